/* Runs a program whose calls on files fail as asked, also those that bypass libc.
 *
 *   faulty KIND AT HOW ROOT LOG PROGRAM [ARGUMENT...]
 *
 * KIND is write, sync, rename, open, make, any of these, or full. The AT-th call of that kind, of PROGRAM itself and on a path below ROOT,
 * fails: HOW is the number of an error, `short` for a write of half the bytes, or `kill` to kill PROGRAM. Of `full` all later calls fail, too, that
 * need room on the disk. AT 0 fails nothing, and AT -1 all calls once there is a file LOG.now. Each counted call is a line of LOG: its number, and its path.
 *
 * A seccomp filter hands the calls to this process, which lets them pass or answers them. It stays until the last descendant
 * has ended, and exits with the code of PROGRAM as soon as that has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum kind { WRITE, SYNC, RENAME, OPEN, MAKE, ANY, FULL };

/* A call: its number, its kind, and which arguments are the descriptor (or directory) and the path; -1 for none. */
struct call {
    long number;
    enum kind kind;
    int fd, path;
};

static const struct call CALLS[] = {
    {SYS_write, WRITE, 0, -1},
    {SYS_pwrite64, WRITE, 0, -1},
    {SYS_writev, WRITE, 0, -1},
    {SYS_fallocate, WRITE, 0, -1},
    {SYS_copy_file_range, WRITE, 2, -1},
    {SYS_ftruncate, WRITE, 0, -1},
    {SYS_fsync, SYNC, 0, -1},
    {SYS_fdatasync, SYNC, 0, -1},
    {SYS_openat, OPEN, 0, 1},
    {SYS_mkdirat, MAKE, 0, 1},
    {SYS_linkat, RENAME, 2, 3},
    {SYS_renameat2, RENAME, 2, 3},
#ifdef SYS_renameat
    {SYS_renameat, RENAME, 2, 3},
#endif
#ifdef SYS_open
    {SYS_open, OPEN, -1, 0},
    {SYS_mkdir, MAKE, -1, 0},
    {SYS_rename, RENAME, -1, 1},
    {SYS_link, RENAME, -1, 1},
#endif
};
#define COUNT (sizeof CALLS / sizeof *CALLS)
#define PATHS 8192

static const char *root, *program, *how;
static char now[PATHS];
static int wanted, is_full;
static long at, seen;
static FILE *record;

static int installed(void) {
    struct sock_filter filter[COUNT + 3];
    size_t length = 0;
    filter[length++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT; i++) {
        filter[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALLS[i].number, COUNT - i, 0);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog fprog = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &fprog);
}

static int linked(pid_t pid, const char *what, long number, char *path) {
    char link[64];
    if (number < 0) snprintf(link, sizeof link, "/proc/%d/%s", pid, what);
    else snprintf(link, sizeof link, "/proc/%d/%s/%ld", pid, what, number);
    ssize_t length = readlink(link, path, PATHS / 2);
    path[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* Finds the path that a call is about. */
static int path_of(const struct seccomp_notif *asked, const struct call *call, char *path) {
    int fd = call->fd < 0 ? AT_FDCWD : (int)asked->data.args[call->fd];
    if (call->path < 0) return linked(asked->pid, "fd", fd, path);
    char name[PATHS / 2 - 1] = {0}, memory[64];
    snprintf(memory, sizeof memory, "/proc/%d/mem", asked->pid);
    int file = open(memory, O_RDONLY);
    if (file < 0) return 0;
    ssize_t length = pread(file, name, sizeof name - 1, asked->data.args[call->path]);
    /* The string may end just before memory that cannot be read. */
    for (size_t part = 2048; length < 0 && part > 16; part /= 2)
        length = pread(file, name, part, asked->data.args[call->path]);
    close(file);
    if (length <= 0) return 0;
    if (name[0] == '/') return strcpy(path, name), 1;
    if (!(fd == AT_FDCWD ? linked(asked->pid, "cwd", -1, path) : linked(asked->pid, "fd", fd, path)))
        return 0;
    strcat(strcat(path, "/"), name);
    return 1;
}

/* Whether a call needs room that the file does not have yet. */
static int needs_room(const struct seccomp_notif *asked, const struct call *call, const char *path) {
    struct stat found;
    int is_there = stat(path, &found) == 0;
    if (call->kind == MAKE) return !is_there;
    if (call->kind == OPEN) {
        long flags = asked->data.args[call->path + 1];
        return (flags & O_CREAT) && !is_there;
    }
    if (call->kind != WRITE || call->number == SYS_ftruncate || !is_there) return 0;
    if (call->number == SYS_fallocate) return 1;
    long position = 0, flags = 0;
    char info[64], line[128];
    snprintf(info, sizeof info, "/proc/%d/fdinfo/%d", asked->pid, (int)asked->data.args[0]);
    FILE *file = fopen(info, "r");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "pos: %ld", &position);
        sscanf(line, "flags: %lo", &flags);
    }
    if (file) fclose(file);
    if (flags & O_APPEND) position = found.st_size;
    return position + (long)asked->data.args[2] > found.st_blocks * 512;
}

static long half_written(const struct seccomp_notif *asked) {
    size_t length = asked->data.args[2] / 2;
    char status[64], line[128], *bytes = malloc(length + 1);
    int tgid = asked->pid;
    snprintf(status, sizeof status, "/proc/%d/status", asked->pid);
    FILE *file = fopen(status, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Tgid: %d", &tgid);
    if (file) fclose(file);
    snprintf(status, sizeof status, "/proc/%d/mem", asked->pid);
    int memory = open(status, O_RDONLY), process = syscall(SYS_pidfd_open, tgid, 0);
    int fd = syscall(SYS_pidfd_getfd, process, (int)asked->data.args[0], 0);
    ssize_t written = pread(memory, bytes, length, asked->data.args[1]);
    if (written > 0) written = write(fd, bytes, written);
    close(memory), close(process), close(fd), free(bytes);
    return written;
}

static void answer(const struct seccomp_notif *asked, struct seccomp_notif_resp *reply) {
    char path[PATHS], exe[PATHS];
    reply->id = asked->id;
    reply->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    const struct call *call = CALLS;
    while (call->number != asked->data.nr) call++;
    if (wanted < ANY && (int)call->kind != wanted) return;
    if (!linked(asked->pid, "exe", -1, exe) || strcmp(exe, program)) return;
    if (!path_of(asked, call, path) || strncmp(path, root, strlen(root))) return;
    if (is_full && !needs_room(asked, call, path)) return;
    int is_short = !strcmp(how, "short");
    if (is_short && (call->number != SYS_write || asked->data.args[2] < 2)) return;
    seen++;
    fprintf(record, "%ld %s\n", seen, path);
    fflush(record);
    if (at < 0 ? access(now, F_OK) : !at || (is_full ? seen < at : seen != at)) return;
    if (!strcmp(how, "kill")) {
        kill(asked->pid, SIGKILL);
        return;
    }
    long written = is_short ? half_written(asked) : -1;
    if (is_short && written < 0) return;
    reply->flags = 0;
    if (is_short) reply->val = written;
    else reply->error = -atoi(how);
}

static void serve(int listener) {
    for (;;) {
        struct pollfd ready = {listener, POLLIN, 0};
        if (poll(&ready, 1, -1) < 0 && errno != EINTR) return;
        if (ready.revents & (POLLHUP | POLLERR)) return;
        if (!(ready.revents & POLLIN)) continue;
        struct seccomp_notif asked = {0};
        struct seccomp_notif_resp reply = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked)) continue;
        answer(&asked, &reply);
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
    }
}

static pid_t child;
static int status_pipe;

static void ended(int signal) {
    (void)signal;
    int status, kept = errno;
    if (waitpid(child, &status, WNOHANG) == child) (void)!write(status_pipe, &status, sizeof status);
    errno = kept;
}

static void pass_on(int signal) { kill(child, signal); }

int main(int count, char **words) {
    static const char *const NAMES[] = {"write", "sync", "rename", "open", "make", "any", "full"};
    if (count < 7) return 99;
    for (wanted = 0; wanted < FULL && strcmp(words[1], NAMES[wanted]); wanted++) {}
    is_full = wanted == FULL;
    at = atol(words[2]), how = words[3], root = words[4], program = realpath(words[6], NULL);
    record = fopen(words[5], "w");
    snprintf(now, sizeof now, "%s.now", words[5]);
    int statuses[2], sockets[2];
    if (!record || !program || pipe2(statuses, O_CLOEXEC)) return 99;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets)) return 99;
    pid_t server = fork();
    if (server) {
        /* This process is what others wait for: it ends with the program. */
        close(statuses[1]);
        int status;
        while (read(statuses[0], &status, sizeof status) != sizeof status)
            if (errno != EINTR) return 99;
        if (WIFSIGNALED(status)) signal(WTERMSIG(status), SIG_DFL), raise(WTERMSIG(status));
        return WEXITSTATUS(status);
    }
    status_pipe = statuses[1];
    child = fork();
    if (!child) {
        int listener = installed();
        if (listener < 0) _exit(99);
        struct iovec byte = {&(char){0}, 1};
        char space[CMSG_SPACE(sizeof listener)] = {0};
        struct msghdr message = {
            .msg_iov = &byte, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof listener);
        memcpy(CMSG_DATA(header), &listener, sizeof listener);
        if (sendmsg(sockets[1], &message, 0) != 1) _exit(99);
        close(listener);
        execv(program, words + 6);
        _exit(99);
    }
    close(sockets[1]);
    struct sigaction action = {.sa_handler = ended};
    sigaction(SIGCHLD, &action, NULL);
    ended(0);
    char byte, space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t length;
    while ((length = recvmsg(sockets[0], &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (length != 1 || !header) return 99;
    int listener;
    memcpy(&listener, CMSG_DATA(header), sizeof listener);
    for (int fd = 0; fd < 3; fd++) dup2(open("/dev/null", O_RDWR), fd);
    setsid();
    signal(SIGTERM, pass_on), signal(SIGINT, pass_on);
    serve(listener);
    /* The filter may be gone before the signal has come. */
    sigset_t both;
    sigemptyset(&both), sigaddset(&both, SIGCHLD), sigprocmask(SIG_BLOCK, &both, NULL);
    int status;
    if (waitpid(child, &status, 0) == child) (void)!write(status_pipe, &status, sizeof status);
    return 0;
}
