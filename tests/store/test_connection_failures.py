"""Which failures of a connection pass by themselves, as PostgreSQL, PgBouncer and the library word them."""

from __future__ import annotations

import psycopg
import pytest

from council.store.postgres_connection import is_full, is_temporary

FULL = (
    "FATAL:  sorry, too many clients already",
    "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
    "FATAL:  remaining connection slots are reserved for non-replication superuser connections",
    'FATAL:  too many connections for role "council"',
    'FATAL:  too many connections for database "council"',
    "FATAL:  no more connections allowed (max_client_conn)",
)
PASSING = (
    "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?",
    "server closed the connection unexpectedly",
    "failed to resolve host 'db': [Errno -3] Temporary failure in name resolution",
    "FATAL:  the database system is starting up",
    "FATAL:  the database system is shutting down",
    "FATAL:  the database system is not yet accepting connections",
    "FATAL:  terminating connection due to administrator command",
    "FATAL:  server login has been failing, try again later (server_login_retry)",
    "FATAL:  client_login_timeout (server down)",
    "FATAL:  query_wait_timeout",
)
LASTING = (
    'FATAL:  password authentication failed for user "council"',
    "fe_sendauth: no password supplied",
    'FATAL:  database "council" does not exist',
    'FATAL:  role "council" does not exist',
    "FATAL:  no such user: council",
    'FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "council", database "council"',
)


@pytest.mark.behaviour("32-full-slots", "32-patient-start")
@pytest.mark.parametrize("text", [*FULL, *PASSING, *LASTING])
def test_a_start_is_repeated_if_the_failure_may_pass(text: str) -> None:
    error = psycopg.OperationalError(f'connection to server at "db" failed: {text}')
    assert (is_full(error), is_temporary(error)) == (text in FULL, text not in LASTING)


@pytest.mark.behaviour("32-patient-start")
@pytest.mark.parametrize("error", [psycopg.errors.InsufficientPrivilege("no"), PermissionError("no"), None])
def test_a_failure_that_is_none_of_a_connection_is_not_repeated(error: BaseException | None) -> None:
    assert not is_temporary(error)
