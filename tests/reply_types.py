"""All typed replies of the shipped protocols."""

from __future__ import annotations

from council.engine.reply import Reply
from council.protocols.adversarial import replies as adversarial
from council.protocols.advisors import replies as advisors
from council.protocols.common import points
from council.protocols.general import replies as general
from council.protocols.judges import replies as judges
from council.protocols.ranking import replies as ranking

REPLY_TYPES: dict[str, type[Reply]] = {
    name: reply
    for module in (adversarial, advisors, general, judges, ranking, points)
    for name, reply in vars(module).items()
    if not name.startswith("_") and isinstance(reply, type) and issubclass(reply, Reply) and reply is not Reply
}
