/* Let the nth disk operation of a process fail, and set its clock. Loaded with LD_PRELOAD, with these environment variables:
 *
 *   DISK_FAULT_ROOT   only files whose path starts with this are counted; nothing fails without it
 *   DISK_FAULT_OPS    the counted operations, such as "write,fsync"; all of them if empty
 *   DISK_FAULT_FIRST  number of the first operation that fails; 0: none
 *   DISK_FAULT_COUNT  how many operations fail from there; 0: all later ones
 *   DISK_FAULT_ERROR  the error number; 0: a write stores half of its bytes and says so
 *   DISK_FAULT_SIGNAL the process gets this signal instead of the error
 *   DISK_FAULT_LOG    a file that gets a line for each counted operation
 *   CLOCK_SHIFT_FILE  a file with the seconds that are added to the time of day; it may change at any time
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int counted;

static long number(const char *name) {
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

static int is_listed(const char *operation) {
    const char *names = getenv("DISK_FAULT_OPS");
    const char *found = names ? strstr(names, operation) : 0;
    return !names || !*names || found != 0;
}

static void add_to_log(int n, const char *operation, const char *path) {
    const char *name = getenv("DISK_FAULT_LOG");
    char line[PATH_MAX + 64];
    long log;
    if (!name) return;
    log = syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log < 0) return;
    syscall(SYS_write, log, line, (size_t)snprintf(line, sizeof line, "%d %s %s\n", n, operation, path));
    syscall(SYS_close, log);
}

/* Return -1 if the operation on this path is to succeed, else its error number. */
static int fault_for(const char *operation, const char *path) {
    const char *root = getenv("DISK_FAULT_ROOT");
    int n;
    long first, count;
    if (!root || !path || strncmp(path, root, strlen(root)) || !is_listed(operation)) return -1;
    n = __atomic_add_fetch(&counted, 1, __ATOMIC_SEQ_CST);
    first = number("DISK_FAULT_FIRST");
    count = number("DISK_FAULT_COUNT");
    add_to_log(n, operation, path);
    if (!first || n < first || (count && n >= first + count)) return -1;
    if (number("DISK_FAULT_SIGNAL")) kill(getpid(), (int)number("DISK_FAULT_SIGNAL"));
    return (int)number("DISK_FAULT_ERROR");
}

static int fault_of_file(const char *operation, int handle) {
    char link[64], path[PATH_MAX];
    ssize_t length;
    if (!getenv("DISK_FAULT_ROOT")) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0) return -1;
    path[length] = 0;
    return fault_for(operation, path);
}

#define NEXT(type, name, ...)                                    \
    static type (*next)(__VA_ARGS__);                            \
    if (!next) next = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
#define FAIL(error) return errno = (error), -1

/* The permissions of a file. Only counted if DISK_FAULT_OPS names chmod: most disks that fail keep their permissions. */
static int fault_of_mode(int handle) {
    const char *names = getenv("DISK_FAULT_OPS");
    return names && strstr(names, "chmod") ? fault_of_file("chmod", handle) : -1;
}

int fchmod(int handle, mode_t mode) {
    NEXT(int, "fchmod", int, mode_t);
    int saved = errno, fault = fault_of_mode(handle);
    if (fault > 0) FAIL(fault);
    errno = saved;
    return next(handle, mode);
}

int chmod(const char *path, mode_t mode) {
    NEXT(int, "chmod", const char *, mode_t);
    int saved = errno, fault = -1, handle;
    if (sscanf(path, "/proc/self/fd/%d", &handle) == 1) fault = fault_of_mode(handle);
    else if (getenv("DISK_FAULT_OPS") && strstr(getenv("DISK_FAULT_OPS"), "chmod")) fault = fault_for("chmod", path);
    if (fault > 0) FAIL(fault);
    errno = saved;
    return next(path, mode);
}

ssize_t write(int handle, const void *from, size_t size) {
    NEXT(ssize_t, "write", int, const void *, size_t);
    int saved = errno, fault = fault_of_file("write", handle);
    if (fault > 0) FAIL(fault);
    errno = saved;
    return next(handle, from, fault == 0 && size > 1 ? size / 2 : size);
}

#define PWRITE(name)                                                               \
    ssize_t name(int handle, const void *from, size_t size, off_t at) {            \
        NEXT(ssize_t, #name, int, const void *, size_t, off_t);                    \
        int saved = errno, fault = fault_of_file("write", handle);                 \
        if (fault > 0) FAIL(fault);                                                \
        errno = saved;                                                             \
        return next(handle, from, fault == 0 && size > 1 ? size / 2 : size, at);   \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define SYNC(name)                                               \
    int name(int handle) {                                       \
        NEXT(int, #name, int);                                   \
        int saved = errno, fault = fault_of_file("fsync", handle); \
        if (fault > 0) FAIL(fault);                              \
        errno = saved;                                           \
        return next(handle);                                     \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name)                                              \
    int name(int handle, off_t size) {                              \
        NEXT(int, #name, int, off_t);                               \
        int saved = errno, fault = fault_of_file("truncate", handle); \
        if (fault > 0) FAIL(fault);                                 \
        errno = saved;                                              \
        return next(handle, size);                                  \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define TWO_PATHS(name, operation)                      \
    int name(const char *from, const char *to) {        \
        NEXT(int, #name, const char *, const char *);   \
        int fault = fault_for(operation, to);           \
        if (fault > 0) FAIL(fault);                     \
        return next(from, to);                          \
    }
TWO_PATHS(rename, "rename")
TWO_PATHS(link, "link")

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    NEXT(int, "renameat", int, const char *, int, const char *);
    int fault = fault_for("rename", to);
    if (fault > 0) FAIL(fault);
    return next(from_folder, from, to_folder, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    NEXT(int, "linkat", int, const char *, int, const char *, int);
    int fault = fault_for("link", to);
    if (fault > 0) FAIL(fault);
    return next(from_folder, from, to_folder, to, flags);
}

int unlink(const char *path) {
    NEXT(int, "unlink", const char *);
    int fault = fault_for("unlink", path);
    if (fault > 0) FAIL(fault);
    return next(path);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(int, "mkdir", const char *, mode_t);
    int fault = fault_for("mkdir", path);
    if (fault > 0) FAIL(fault);
    return next(path, mode);
}

/* A file is opened to create it only where O_CREAT is set. */
#define OPEN(name)                                                           \
    int name(const char *path, int flags, ...) {                             \
        NEXT(int, #name, const char *, int, ...);                            \
        mode_t mode = 0;                                                     \
        if (flags & O_CREAT) {                                               \
            va_list rest;                                                    \
            va_start(rest, flags);                                           \
            mode = va_arg(rest, mode_t);                                     \
            va_end(rest);                                                    \
            int fault = access(path, F_OK) ? fault_for("create", path) : -1; \
            if (fault > 0) FAIL(fault);                                      \
        }                                                                    \
        return next(path, flags, mode);                                      \
    }
OPEN(open)
OPEN(open64)

/* The clock. Monotonic clocks are not changed, as if the time of day had been set. */

static time_t clock_shift(void) {
    const char *name = getenv("CLOCK_SHIFT_FILE");
    char text[32];
    long file, size;
    if (!name) return 0;
    file = syscall(SYS_openat, AT_FDCWD, name, O_RDONLY);
    if (file < 0) return 0;
    size = syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    text[size > 0 ? size : 0] = 0;
    return (time_t)atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(int, "clock_gettime", clockid_t, struct timespec *);
    int done = next(clock, now);
    if (!done && clock == CLOCK_REALTIME) now->tv_sec += clock_shift();
    return done;
}

int gettimeofday(struct timeval *now, void *zone) {
    NEXT(int, "gettimeofday", struct timeval *, void *);
    int done = next(now, zone);
    if (!done && now) now->tv_sec += clock_shift();
    return done;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
