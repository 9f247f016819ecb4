# Boots a systemd of our own over the machine's files, in namespaces of its own: nothing is written to the
# machine, and when the process that runs this ends, everything in it ends. Called with a folder and a cgroup.
set -eu
FOLDER=$1 CGROUP=$2
if [ -n "$CGROUP" ]; then
    # Whoever is in the cgroup when its namespace is made sees it as the root of all.
    echo 0 > "$CGROUP/cgroup.procs"
    exec unshare --cgroup -- /bin/sh "$0" "$FOLDER" ""
fi
mount -t tmpfs -o mode=0755 tmpfs "$FOLDER/over"
ROOT=$FOLDER/over/root
mkdir "$FOLDER/over/upper" "$FOLDER/over/work" "$ROOT"
mount -t overlay -o "lowerdir=/,upperdir=$FOLDER/over/upper,workdir=$FOLDER/over/work" overlay "$ROOT"
mount -t proc -o nosuid,nodev,noexec proc "$ROOT/proc"
mount --bind "$ROOT/proc/sys" "$ROOT/proc/sys"
mount -o remount,bind,ro,nosuid,nodev,noexec "$ROOT/proc/sys"  # the kernel's settings are the machine's
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs "$ROOT/sys"
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$ROOT/sys/fs/cgroup"
mount -t tmpfs -o mode=0755,nosuid tmpfs "$ROOT/dev"
for name in null zero full random urandom tty; do
    : > "$ROOT/dev/$name"
    mount --bind "/dev/$name" "$ROOT/dev/$name"
done
mkdir "$ROOT/dev/pts" "$ROOT/dev/shm"
mount -t devpts -o newinstance,mode=620,ptmxmode=0666,gid=5,nosuid,noexec devpts "$ROOT/dev/pts"
ln -s pts/ptmx "$ROOT/dev/ptmx"
ln -s /proc/self/fd "$ROOT/dev/fd"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$ROOT/dev/shm"
mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs "$ROOT/run"
for private in home root; do mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs "$ROOT/$private"; done
for open in tmp var/tmp; do mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$ROOT/$open"; done
mkdir -p "$ROOT/run/host" "$ROOT/run/old"
mount --bind "$FOLDER/shared" "$ROOT/run/host"
# The machine's own units, journal and identity are not ours; nor is its state of Rubezh, if it has any.
mount -t tmpfs -o mode=0755 tmpfs "$ROOT/etc/systemd"
mkdir "$ROOT/etc/systemd/system"
# These are of no use here, or would reach for what is the machine's.
for unit in \
    systemd-sysctl.service systemd-modules-load.service systemd-remount-fs.service \
    kmod-static-nodes.service systemd-update-utmp.service systemd-random-seed.service \
    systemd-pstore.service systemd-logind.service dbus-org.freedesktop.login1.service \
    systemd-journald-audit.socket systemd-initctl.socket systemd-udevd.service systemd-networkd.service \
    systemd-timesyncd.service sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount \
    sys-fs-fuse-connections.mount dev-hugepages.mount dev-mqueue.mount proc-sys-fs-binfmt_misc.automount \
    systemd-binfmt.service console-getty.service getty.target systemd-ask-password-wall.path \
    systemd-ask-password-console.path systemd-hwdb-update.service systemd-firstboot.service \
    ldconfig.service
do
    ln -s /dev/null "$ROOT/etc/systemd/system/$unit"
done
rm -rf "$ROOT/var/log/journal" "$ROOT/var/lib/rubezh" "$ROOT/etc/rubezh" "$ROOT/usr/lib/rubezh"
mkdir -p "$ROOT/var/log/journal"
while read -r place && read -r path; do
    mkdir -p "$ROOT$place"
    mount --bind "$path" "$ROOT$place"
    mount -o remount,bind,ro "$ROOT$place"
done < "$FOLDER/shown"
tr -d - < /proc/sys/kernel/random/uuid > "$ROOT/etc/machine-id"
cd "$ROOT"
pivot_root . run/old
umount -l /run/old
mount --make-rshared /  # what is mounted for one service must reach it
# Generators would start what the machine has installed.
exec env -i container=other SYSTEMD_GENERATOR_PATH=/nonexistent NOTIFY_SOCKET=/run/host/notify LANG=C.UTF-8 \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=multi-user.target --log-target=journal-or-kmsg --show-status=0 </dev/null
