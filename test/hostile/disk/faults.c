// Preloaded into a server: system calls on files below one folder fail, write less than asked, or end the
// process, at the n-th call since they were counted from. Which and how is in a file of control that is mapped,
// so that the test changes it while the process runs. The layout is repeated in faults.ts.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum call {
  CALL_WRITE,
  CALL_PWRITE,
  CALL_WRITEV,
  CALL_PWRITEV,
  CALL_FDATASYNC,
  CALL_FSYNC,
  CALL_RENAME,
  CALL_FTRUNCATE,
  CALL_FALLOCATE,
  CALL_CREATE,
  CALL_MMAP,
  CALL_MSYNC,
  CALL_COPY,
  /** A write to a file that is open with O_DSYNC, which is on the disk when it returns. */
  CALL_DSYNC,
  CALL_READ,
  CALL_UNLINK,
  CALL_COUNT
};

enum mode {
  /** Count only. */
  MODE_NONE,
  /** Fail with `error` before anything happens. */
  MODE_ERROR,
  /** Write half and say so. */
  MODE_SHORT,
  /** Write half, then fail with `error`. */
  MODE_TORN,
  /** Write half, then SIGKILL. */
  MODE_KILL,
  /** A sync that fails with `error` and drops what was written to the file since its last sync. */
  MODE_LOST,
  /** Every matching write is short with the probability `share` / 65536. */
  MODE_RANDOM,
  /** Do all of it, then fail with `error`. */
  MODE_LATE,
  /** Write half and say so; the next matching call fails with `error`. */
  MODE_FILLS,
  /** Do all of it, then fail with `error`. It can be read, until `evict` is set: then the file has what it had before. */
  MODE_STALE
};

/** Offsets are those of faults.ts. */
struct control {
  _Atomic uint32_t mode;
  _Atomic uint32_t calls; /* a bit per enum call */
  _Atomic uint32_t first; /* the n-th matching call, from 1 */
  _Atomic uint32_t times; /* how many calls in a row */
  _Atomic uint32_t error;
  _Atomic uint32_t share;
  _Atomic uint32_t seed;
  _Atomic uint32_t evict; /* set by the test: the next open of a file below the folder takes stale writes back */
  _Atomic uint32_t matched;
  _Atomic uint32_t fired;
  _Atomic uint32_t counts[CALL_COUNT];
  char place[256]; /* the path of the last fault */
};

static struct control *control;
static char folder[PATH_MAX];
static size_t folder_length;
/** The process to which faults apply; processes that it starts are left alone. */
static pid_t owner;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off64_t);
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *);
static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_pread)(int, void *, size_t, off64_t);
static ssize_t (*real_readv)(int, const struct iovec *, int);
static ssize_t (*real_preadv)(int, const struct iovec *, int, off64_t);
static int (*real_ftruncate)(int, off64_t);
static int (*real_fallocate)(int, int, off64_t, off64_t);
static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static void *(*real_mmap)(void *, size_t, int, int, int, off64_t);
static int (*real_msync)(void *, size_t, int);
static ssize_t (*real_sendfile)(int, int, off64_t *, size_t);
static ssize_t (*real_copy_file_range)(int, off64_t *, int, off64_t *, size_t, unsigned);

static void *next(const char *name) {
  return dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void) {
  real_write = next("write");
  real_pwrite = next("pwrite64");
  real_writev = next("writev");
  real_pwritev = next("pwritev64");
  real_fdatasync = next("fdatasync");
  real_fsync = next("fsync");
  real_rename = next("rename");
  real_unlink = next("unlink");
  real_read = next("read");
  real_pread = next("pread64");
  real_readv = next("readv");
  real_preadv = next("preadv64");
  real_ftruncate = next("ftruncate64");
  real_fallocate = next("fallocate64");
  real_open = next("open64");
  real_openat = next("openat64");
  real_mmap = next("mmap64");
  real_msync = next("msync");
  real_sendfile = next("sendfile64");
  real_copy_file_range = next("copy_file_range");
  const char *path = getenv("FAULTS_CONTROL");
  const char *below = getenv("FAULTS_FOLDER");
  if (path == NULL || below == NULL || realpath(below, folder) == NULL) return;
  folder_length = strlen(folder);
  int file = real_open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *mapped = real_mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return;
  owner = getpid();
  control = mapped;
}

static int is_below(const char *path) {
  return strncmp(path, folder, folder_length) == 0 && path[folder_length] == '/';
}

/** The path of a descriptor below the folder; NULL for all others. */
static const char *path_of(int file, char *path) {
  if (control == NULL) return NULL;
  int saved = errno;
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  errno = saved;
  if (length <= 0) return NULL;
  path[length] = 0;
  return is_below(path) ? path : NULL;
}

/** Counts the call; returns what is to happen to it. */
static enum mode decide(enum call call, const char *path) {
  if (path == NULL) return MODE_NONE;
  atomic_fetch_add(&control->counts[call], 1);
  uint32_t mode = atomic_load(&control->mode);
  if (mode == MODE_NONE || (atomic_load(&control->calls) >> call & 1) == 0) return MODE_NONE;
  uint32_t matched = atomic_fetch_add(&control->matched, 1) + 1;
  if (mode == MODE_RANDOM) {
    // A number for each call that depends on its place in the order of calls only.
    uint32_t mixed = (matched + atomic_load(&control->seed)) * 2654435761u;
    mixed ^= mixed >> 15;
    mixed *= 2246822519u;
    mixed ^= mixed >> 13;
    if ((mixed & 0xffff) >= atomic_load(&control->share)) return MODE_NONE;
  } else {
    uint32_t first = atomic_load(&control->first);
    uint32_t times = atomic_load(&control->times) + (mode == MODE_FILLS ? 1 : 0);
    if (matched < first || matched - first >= times) return MODE_NONE;
    if (mode == MODE_FILLS) mode = matched == first ? MODE_SHORT : MODE_ERROR;
  }
  snprintf(control->place, sizeof control->place, "%s", path);
  atomic_fetch_add(&control->fired, 1);
  return mode;
}

static int fail(void) {
  errno = (int)atomic_load(&control->error);
  return -1;
}

static void end_process(void) {
  kill(owner, SIGKILL);
  pause();
}

// Writes with what was there before. MODE_LOST puts that back when a sync fails, as the system may after it has failed to
// write a page: it takes the page for clean and reads it again. MODE_STALE does so later, when the page is read again.

struct change {
  struct change *next;
  /** Keeps the inode, so that no other file gets its number. */
  int file;
  dev_t device;
  ino_t inode;
  off64_t offset;
  size_t length;
  char before[];
};

struct changes {
  struct change *first;
  pthread_mutex_t lock;
};

static struct changes unsynced = {NULL, PTHREAD_MUTEX_INITIALIZER};
static struct changes stale = {NULL, PTHREAD_MUTEX_INITIALIZER};

static int is_tracking(void) {
  return control != NULL && atomic_load(&control->mode) == MODE_LOST;
}

/** The file of a descriptor, for reading and writing; negative if there is none. */
static int open_again(int file) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  return real_open(link, O_RDWR | O_CLOEXEC);
}

static void remember(struct changes *changes, int file, off64_t offset, size_t length) {
  struct stat64 status;
  if (fstat64(file, &status) != 0) return;
  struct change *change = calloc(1, sizeof *change + length);
  if (change == NULL) return;
  change->file = open_again(file);
  if (change->file >= 0) {
    ssize_t got = real_pread(change->file, change->before, length, offset);
    (void)got; // The rest stays zero, which is what a longer file would have there.
  }
  change->device = status.st_dev;
  change->inode = status.st_ino;
  change->offset = offset;
  change->length = length;
  pthread_mutex_lock(&changes->lock);
  change->next = changes->first;
  changes->first = change;
  pthread_mutex_unlock(&changes->lock);
}

/** Forgets the changes of a file, or of all if it is negative; puts back what was there, newest first, if they are lost. */
static void settle(struct changes *changes, int file, int are_lost) {
  struct stat64 status;
  if (file >= 0 && fstat64(file, &status) != 0) return;
  pthread_mutex_lock(&changes->lock);
  struct change **place = &changes->first;
  while (*place != NULL) {
    struct change *change = *place;
    if (file >= 0 && (change->device != status.st_dev || change->inode != status.st_ino)) {
      place = &change->next;
      continue;
    }
    if (are_lost && change->file >= 0) {
      ssize_t put = real_pwrite(change->file, change->before, change->length, change->offset);
      (void)put; // The length of the file stays, as it would.
    }
    *place = change->next;
    if (change->file >= 0) close(change->file);
    free(change);
  }
  pthread_mutex_unlock(&changes->lock);
}

/** What is written, or cut off, is no longer stale there: the file will have it. */
static void refresh(int file, off64_t offset, size_t length) {
  if (stale.first == NULL) return;
  struct stat64 status;
  if (fstat64(file, &status) != 0) return;
  pthread_mutex_lock(&stale.lock);
  for (struct change *change = stale.first; change != NULL; change = change->next) {
    if (change->device != status.st_dev || change->inode != status.st_ino) continue;
    off64_t from = offset > change->offset ? offset : change->offset;
    off64_t end = offset + (off64_t)length;
    off64_t change_end = change->offset + (off64_t)change->length;
    if (end > change_end) end = change_end;
    if (from >= end || change->file < 0) continue;
    ssize_t got = real_pread(change->file, change->before + (from - change->offset), end - from, from);
    (void)got;
  }
  pthread_mutex_unlock(&stale.lock);
}

/** Also those that are cut off from the file. */
static void refresh_cut(int file, off64_t length) {
  if (stale.first == NULL) return;
  struct stat64 status;
  if (fstat64(file, &status) != 0) return;
  pthread_mutex_lock(&stale.lock);
  for (struct change *change = stale.first; change != NULL; change = change->next) {
    if (change->device != status.st_dev || change->inode != status.st_ino) continue;
    if (change->offset >= length) change->length = 0;
    else if (change->offset + (off64_t)change->length > length) change->length = length - change->offset;
  }
  pthread_mutex_unlock(&stale.lock);
}

/** Where a write without an offset goes. */
static off64_t place_of(int file, off64_t offset) {
  if (offset >= 0) return offset;
  int flags = fcntl(file, F_GETFL);
  return lseek64(file, 0, (flags & O_APPEND) != 0 ? SEEK_END : SEEK_CUR);
}

static int is_synced(int file) {
  int flags = fcntl(file, F_GETFL);
  return flags >= 0 && (flags & O_DSYNC) != 0;
}

/** How much of a faulty write reaches the file. */
static size_t part_of(size_t length) {
  return length / 2;
}

static size_t length_of(const struct iovec *parts, int count) {
  size_t length = 0;
  for (int i = 0; i < count; i++) length += parts[i].iov_len;
  return length;
}

/** The first bytes of the parts, at an offset, or where the file is if that is negative. */
static ssize_t write_parts(int file, const struct iovec *parts, int count, off64_t offset, size_t length) {
  ssize_t written = 0;
  for (int i = 0; i < count && (size_t)written < length; i++) {
    size_t rest = length - (size_t)written;
    size_t part = parts[i].iov_len < rest ? parts[i].iov_len : rest;
    ssize_t put = offset < 0 ? real_write(file, parts[i].iov_base, part)
                             : real_pwrite(file, parts[i].iov_base, part, offset + written);
    if (put < 0) return written > 0 ? written : put;
    written += put;
  }
  return written;
}

/** A write of a file below the folder, with what happens to it. */
static ssize_t faulty_write(enum call call, const char *path, int file, const struct iovec *parts, int count, off64_t offset) {
  int synced = is_synced(file);
  enum mode mode = decide(synced ? CALL_DSYNC : call, path);
  if (mode == MODE_ERROR) return fail();
  size_t length = length_of(parts, count);
  off64_t place = place_of(file, offset);
  if (!synced && is_tracking() && place >= 0) remember(&unsynced, file, place, length);
  struct changes *changes = mode == MODE_LOST ? &unsynced : &stale;
  if ((mode == MODE_LOST || mode == MODE_STALE) && place >= 0) remember(changes, file, place, length);
  int is_short = (mode == MODE_SHORT || mode == MODE_RANDOM) && length > 1;
  int is_part = is_short || mode == MODE_TORN || mode == MODE_KILL;
  ssize_t written = write_parts(file, parts, count, offset, is_part ? part_of(length) : length);
  if (mode == MODE_KILL) end_process();
  if (mode == MODE_LOST) settle(&unsynced, file, 1);
  if (mode != MODE_STALE && place >= 0 && written > 0) refresh(file, place, written);
  return mode == MODE_NONE || mode == MODE_SHORT || mode == MODE_RANDOM ? written : fail();
}

ssize_t write(int file, const void *bytes, size_t length) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  if (path == NULL) return real_write(file, bytes, length);
  struct iovec part = {(void *)bytes, length};
  return faulty_write(CALL_WRITE, path, file, &part, 1, -1);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  if (path == NULL) return real_pwrite(file, bytes, length, offset);
  struct iovec part = {(void *)bytes, length};
  return faulty_write(CALL_PWRITE, path, file, &part, 1, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
  return pwrite64(file, bytes, length, offset);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  if (path == NULL) return real_writev(file, parts, count);
  return faulty_write(CALL_WRITEV, path, file, parts, count, -1);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  if (path == NULL) return real_pwritev(file, parts, count, offset);
  return faulty_write(CALL_PWRITEV, path, file, parts, count, offset);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
  return pwritev64(file, parts, count, offset);
}

/** A read of a file below the folder: whether it fails, and by how many bytes it is shorter than asked. */
static enum mode decide_read(int file) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  enum mode mode = decide(CALL_READ, path);
  if (mode == MODE_KILL) end_process();
  return mode;
}

ssize_t read(int file, void *bytes, size_t length) {
  enum mode mode = decide_read(file);
  if (mode == MODE_ERROR) return fail();
  return real_read(file, bytes, mode == MODE_NONE || length < 2 ? length : part_of(length));
}

ssize_t pread64(int file, void *bytes, size_t length, off64_t offset) {
  enum mode mode = decide_read(file);
  if (mode == MODE_ERROR) return fail();
  return real_pread(file, bytes, mode == MODE_NONE || length < 2 ? length : part_of(length), offset);
}

ssize_t pread(int file, void *bytes, size_t length, off_t offset) {
  return pread64(file, bytes, length, offset);
}

ssize_t readv(int file, const struct iovec *parts, int count) {
  enum mode mode = decide_read(file);
  return mode == MODE_ERROR ? fail() : real_readv(file, parts, mode == MODE_NONE ? count : 1);
}

ssize_t preadv64(int file, const struct iovec *parts, int count, off64_t offset) {
  enum mode mode = decide_read(file);
  return mode == MODE_ERROR ? fail() : real_preadv(file, parts, mode == MODE_NONE ? count : 1, offset);
}

ssize_t preadv(int file, const struct iovec *parts, int count, off_t offset) {
  return preadv64(file, parts, count, offset);
}

/** Decides what happens to a call that cannot succeed in part. */
static enum mode decide_whole(enum call call, const char *path) {
  enum mode mode = decide(call, path);
  if (mode == MODE_KILL) end_process();
  return mode;
}

static int is_failed(enum call call, const char *path) {
  enum mode mode = decide_whole(call, path);
  return mode == MODE_ERROR || mode == MODE_LOST;
}

static int sync_file(enum call call, int file, int (*sync)(int)) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  enum mode mode = decide_whole(call, path);
  int failed = mode == MODE_ERROR || mode == MODE_LOST;
  if (path != NULL && is_tracking()) settle(&unsynced, file, failed);
  if (failed) return fail();
  int result = sync(file);
  return mode == MODE_LATE ? fail() : result;
}

int fdatasync(int file) {
  return sync_file(CALL_FDATASYNC, file, real_fdatasync);
}

int fsync(int file) {
  return sync_file(CALL_FSYNC, file, real_fsync);
}

int rename(const char *from, const char *to) {
  char buffer[PATH_MAX];
  const char *path = control != NULL && realpath(from, buffer) != NULL && is_below(buffer) ? buffer : NULL;
  enum mode mode = decide_whole(CALL_RENAME, path);
  if (mode == MODE_ERROR) return fail();
  int result = real_rename(from, to);
  return mode == MODE_LATE ? fail() : result;
}

int unlink(const char *name) {
  enum mode mode = decide_whole(CALL_UNLINK, control != NULL && is_below(name) ? name : NULL);
  if (mode == MODE_ERROR) return fail();
  int result = real_unlink(name);
  return mode == MODE_LATE ? fail() : result;
}

int ftruncate64(int file, off64_t length) {
  char buffer[PATH_MAX];
  const char *path = path_of(file, buffer);
  enum mode mode = decide_whole(CALL_FTRUNCATE, path);
  if (mode == MODE_ERROR) return fail();
  int result = real_ftruncate(file, length);
  if (path != NULL) refresh_cut(file, length);
  return mode == MODE_LATE ? fail() : result;
}

int ftruncate(int file, off_t length) {
  return ftruncate64(file, length);
}

int fallocate64(int file, int mode, off64_t offset, off64_t length) {
  char buffer[PATH_MAX];
  if (is_failed(CALL_FALLOCATE, path_of(file, buffer))) return fail();
  return real_fallocate(file, mode, offset, length);
}

int fallocate(int file, int mode, off_t offset, off_t length) {
  return fallocate64(file, mode, offset, length);
}

static int open_file(int folder_file, const char *name, int flags, mode_t mode) {
  int is_inside = control != NULL && name[0] == '/' && is_below(name);
  if (is_inside && atomic_exchange(&control->evict, 0) != 0) settle(&stale, -1, 1);
  enum mode fault = is_inside && (flags & O_CREAT) != 0 ? decide_whole(CALL_CREATE, name) : MODE_NONE;
  if (fault == MODE_ERROR) return fail();
  int file = real_openat(folder_file, name, flags, mode);
  if (fault != MODE_LATE) return file;
  if (file >= 0) close(file);
  return fail();
}

#define OPEN_MODE(flags)                                 \
  mode_t mode = 0;                                       \
  if (((flags) & (O_CREAT | __O_TMPFILE)) != 0) {        \
    va_list rest;                                        \
    va_start(rest, flags);                               \
    mode = va_arg(rest, mode_t);                         \
    va_end(rest);                                        \
  }

int open64(const char *name, int flags, ...) {
  OPEN_MODE(flags)
  return open_file(AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...) {
  OPEN_MODE(flags)
  return open_file(AT_FDCWD, name, flags, mode);
}

int openat64(int folder_file, const char *name, int flags, ...) {
  OPEN_MODE(flags)
  return open_file(folder_file, name, flags, mode);
}

int openat(int folder_file, const char *name, int flags, ...) {
  OPEN_MODE(flags)
  return open_file(folder_file, name, flags, mode);
}

void *mmap64(void *address, size_t length, int protection, int flags, int file, off64_t offset) {
  char buffer[PATH_MAX];
  // Loaders map files before this library has begun.
  if (real_mmap == NULL) return (void *)syscall(SYS_mmap, address, length, protection, flags, file, offset);
  const char *path = (flags & MAP_ANONYMOUS) != 0 ? NULL : path_of(file, buffer);
  if (!is_failed(CALL_MMAP, path)) return real_mmap(address, length, protection, flags, file, offset);
  fail();
  return MAP_FAILED;
}

void *mmap(void *address, size_t length, int protection, int flags, int file, off_t offset) {
  return mmap64(address, length, protection, flags, file, offset);
}

int msync(void *address, size_t length, int flags) {
  return real_msync(address, length, flags);
}

static size_t copied_of(enum mode mode, size_t length) {
  return mode == MODE_NONE || mode == MODE_LATE || length < 2 ? length : part_of(length);
}

static ssize_t after_copy(enum mode mode, ssize_t copied) {
  if (mode == MODE_KILL) end_process();
  return mode == MODE_NONE || mode == MODE_SHORT || mode == MODE_RANDOM ? copied : fail();
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t length) {
  char buffer[PATH_MAX];
  const char *path = path_of(to, buffer);
  enum mode mode = decide(CALL_COPY, path);
  if (mode == MODE_ERROR) return fail();
  return after_copy(mode, real_sendfile(to, from, offset, copied_of(mode, length)));
}

ssize_t sendfile(int to, int from, off_t *offset, size_t length) {
  return sendfile64(to, from, offset, length);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
  char buffer[PATH_MAX];
  const char *path = path_of(to, buffer);
  enum mode mode = decide(CALL_COPY, path);
  if (mode == MODE_ERROR) return fail();
  return after_copy(mode, real_copy_file_range(from, from_at, to, to_at, copied_of(mode, length), flags));
}
