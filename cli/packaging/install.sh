#!/bin/sh
# Installs svc from the folder in which this script stands, or takes it away again.
#
# Usage: install.sh [--uninstall]
#
# PREFIX   where programs go, /usr/local if not set
# ALIAS    name of the short alias, vc if not set; empty for none
# DESTDIR  root of a package that is being made: everything goes below it, and no user or unit of this machine is touched
#
# --uninstall leaves what is not the program's: /etc/svc, /var/lib/svc, /var/log/svc and the user svc.

set -eu

prefix=${PREFIX:-/usr/local}
alias=${ALIAS-vc}
root=${DESTDIR:-}
root=${root%/}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

bin=$root$prefix/bin
man=$root$prefix/share/man
bash_completion=$root$prefix/share/bash-completion/completions/svc
zsh_completion=$root$prefix/share/zsh/site-functions/_svc
fish_completion=$root$prefix/share/fish/vendor_completions.d/svc.fish
unit=$root/etc/systemd/system/svc.service
socket=$root/etc/systemd/system/svc.socket

fail() {
	echo "error: $*" >&2
	exit 1
}

# True when this machine's own user and systemd are meant.
on_this_machine() {
	[ -z "$root" ] && [ "$(uname -s)" = Linux ]
}

systemd_runs() {
	on_this_machine && [ -d /run/systemd/system ]
}

# True when a path is a link to svc beside it, whether or not svc is there.
is_alias() {
	[ -L "$1" ] && [ "$(readlink -- "$1")" = svc ]
}

# A program for another processor or an older C library would otherwise fail halfway, with the shell's own message.
check_program() {
	[ -x "$here/svc" ] || fail "there is no svc beside this script: npm run build makes dist/svc and puts this script there."
	if ! message=$("$here/svc" version 2>&1); then
		fail "$here/svc does not run on this machine, so nothing is installed. It needs the processor that it was built for, and glibc 2.28 or later. $message"
	fi
}

install_program() {
	install -d -m 755 "$bin"
	install -m 755 "$here/svc" "$bin/svc"
	[ -n "$alias" ] || return 0
	if { [ -e "$bin/$alias" ] || [ -L "$bin/$alias" ]; } && ! is_alias "$bin/$alias"; then
		echo "There is another $bin/$alias: it stays, and svc has no short alias." >&2
	else
		ln -sfn svc "$bin/$alias"
	fi
}

install_texts() {
	pages=$(mktemp -d)
	trap 'rm -rf "$pages"' EXIT
	"$here/svc" manpage --directory "$pages" >/dev/null
	install -d -m 755 "$man/man1" "$man/man5" "$man/man7"
	install -m 644 "$pages"/*.1 "$man/man1"
	install -m 644 "$pages"/*.5 "$man/man5"
	install -m 644 "$pages"/*.7 "$man/man7"
	for shell in bash zsh fish; do
		"$here/svc" completion "$shell" >"$pages/completion"
		eval "file=\$${shell}_completion"
		install -d -m 755 "$(dirname -- "$file")"
		install -m 644 "$pages/completion" "$file"
	done
}

install_user() {
	on_this_machine || return 0
	if ! id svc >/dev/null 2>&1; then
		useradd --system --user-group --home-dir /var/lib/svc --no-create-home --shell /usr/sbin/nologin svc ||
			fail 'the user svc cannot be made; make it and run this again.'
	fi
}

install_folders() {
	install -d -m 755 "$root/etc/svc"
	install -d -m 750 "$root/var/lib/svc" "$root/var/log/svc"
	if on_this_machine; then chown svc:svc /var/lib/svc /var/log/svc; fi
	[ ! -e "$root/etc/svc/Configfile" ] || return 0
	printf ':80 {\n\trespond "svc is installed. Its configuration is /etc/svc/Configfile."\n}\n' >"$root/etc/svc/Configfile"
	chmod 644 "$root/etc/svc/Configfile"
}

install_unit() {
	install -d -m 755 "$(dirname -- "$unit")"
	sed "s|^\(Exec[A-Za-z]*\)=/usr/local/bin/|\1=$prefix/bin/|" "$here/svc.service" >"$unit"
	chmod 644 "$unit"
	install -m 644 "$here/svc.socket" "$socket"
	if systemd_runs; then systemctl daemon-reload; fi
}

uninstall() {
	if systemd_runs && [ -e "$socket" ]; then systemctl disable --now svc.socket; fi
	if systemd_runs && [ -e "$unit" ]; then systemctl disable --now svc; fi
	rm -f "$unit" "$socket" "$bash_completion" "$zsh_completion" "$fish_completion"
	rm -f "$man/man1/svc.1" "$man"/man1/svc-*.1 "$man/man5/svc-configfile.5" "$man"/man7/svc-*.7
	if [ -n "$alias" ] && is_alias "$bin/$alias"; then rm -f "$bin/$alias"; fi
	rm -f "$bin/svc"
	if systemd_runs; then systemctl daemon-reload; fi
	echo "svc is removed from $root$prefix. /etc/svc, /var/lib/svc, /var/log/svc and the user svc are left."
}

case $prefix in
/*) ;;
*) fail "PREFIX must begin with a slash: $prefix" ;;
esac
case $prefix$alias in
*[!A-Za-z0-9._/+-]*) fail 'PREFIX and ALIAS may hold letters, digits and . _ + - only.' ;;
esac
case $alias in
*/* | svc) fail "ALIAS is not a name for it: $alias" ;;
esac
if on_this_machine && [ "$(id -u)" -ne 0 ]; then
	fail 'run it as root, or set DESTDIR to make a package.'
fi

case $#:${1-} in
0:)
	check_program
	install_program
	install_texts
	if [ "$(uname -s)" = Linux ]; then
		install_user
		install_folders
		install_unit
	fi
	echo "svc is installed in $root$prefix."
	if systemd_runs; then
		echo 'Start it, now and at every boot: systemctl enable --now svc'
	elif on_this_machine; then
		echo 'Start it: svc run --config /etc/svc/Configfile'
	fi
	;;
1:--uninstall) uninstall ;;
*) fail 'usage: install.sh [--uninstall]' ;;
esac
