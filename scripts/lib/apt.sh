# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Source it after lib.sh: a private apt with lists and archives of its own in the
# cache, for suites that the system lacks.  Needs no root and changes nothing of
# the system.

APT_DIR=$NDK_CACHE/apt

# The Debian mirror that this machine's own apt uses.
mirror() {
	local found
	found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
		awk '$1 == "URIs:" || $1 == "deb" { for (i = 2; i <= NF; i++)
			if ($i ~ /debian(\/|\.list)?$/ && $i ~ /:/) { print $i; exit } }')
	[[ -n $found ]] || die "the apt sources of this machine name no Debian mirror"
	echo "$found"
}

# make_debian_root DIR SUITE PACKAGES [MMDEBSTRAP-OPTION]...: a Debian root with these
# packages, which a comma divides.  A half-made one is not left under its name.  A
# mirror, or a proxy before it, may fail for minutes: it is asked again with longer and
# longer pauses, and then for one file after the other.
make_debian_root() {
	local root=$1 pause log=$1.log
	local -a more=()
	for pause in 20 60 120 240 0; do
		if fill_debian_root "$root.new" "${@:2}" "${more[@]}" 2>"$log"; then
			mv "$root.new" "$root"
			rm "$log"
			return
		fi
		grep -E '^(E|Err|W):?' "$log" | tail -n 10 >&2 || tail -n 10 "$log" >&2
		((pause == 0)) || { say "the root could not be made; again, in $pause s" && sleep "$pause" 8>&- 9>&-; }
		more=(--aptopt='Acquire::http::Pipeline-Depth "0"' --aptopt='Acquire::Queue-Mode "access"')
	done
	say "all that was said: $log"
	return 1
}

fill_debian_root() {
	local work=$1 suite=$2 packages=$3 url
	shift 3
	url=$(mirror) || return
	remove_root "$work" && mkdir -p "$work" || return
	without_descriptors mmdebstrap --verbose --variant=minbase --format=tar --include="$packages" \
		--aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "5"' "$@" "$suite" - "$url" |
		as_root tar -x -C "$work" --exclude='./dev/*'
}

# without_descriptors COMMAND [ARG]...: with the first three alone, none of those that
# whoever called has open.  mmdebstrap has a shell write to a pipe by its number, and
# dash knows numbers of one digit only.
without_descriptors() (
	for file in /proc/self/fd/*; do
		n=${file##*/}
		((n <= 2)) || eval "exec $n>&-"
	done
	exec "$@"
)

# private_apt NAME SUITE...: from here on `fetch` and the other calls use these
# suites.  What other names have fetched stays.  Lists of ten minutes ago are good.
private_apt() {
	local url dir=$APT_DIR/$1
	url=$(mirror)
	shift
	mkdir -p "$dir/lists/partial" "$dir/archives/partial"
	APT_CONFIG_FILE=$dir/apt.conf
	(
		flock 6
		lay_apt "$dir" "$url" "$@"
		if ! cmp -s "$dir/sources.list" "$dir/updated" || [[ -z $(find "$dir/updated" -mmin -10) ]]; then
			# A mirror need not have every suite: what comes of it is looked at in `fetch`.
			# The next call asks again.
			if apt-get -c "$APT_CONFIG_FILE" -qq -o APT::Update::Error-Mode=any update >&2; then
				cp "$dir/sources.list" "$dir/updated"
			else
				say "some suites cannot be fetched from $url"
			fi
		fi
	) 6>"$dir/lock"
}

# lay_apt DIR URL SUITE...: writes what apt has to be told.  Another apt may read the old files:
# each is replaced at once.  Clearing the hooks keeps the system's own clean-up away from its
# archives.
lay_apt() {
	local dir=$1 url=$2 suite
	shift 2
	for suite; do
		echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url $suite main"
	done >"$dir/sources.list.new"
	mv "$dir/sources.list.new" "$dir/sources.list"
	cat >"$dir/apt.conf.new" <<-END
		APT::Architecture "amd64";
		APT::Architectures "amd64";
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State::lists "$dir/lists";
		Dir::Cache "$dir";
		Acquire::Languages "none";
		Acquire::Retries "5";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		APT::Sandbox::User "$(id -un)";
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear DPkg::Post-Invoke;
	END
	mv "$dir/apt.conf.new" "$dir/apt.conf"
}

# literally TEXT: a regular expression that matches a version or a name, and no other.
literally() {
	# shellcheck disable=SC2001 # the replacement uses what was matched
	sed 's/[.+~]/[&]/g' <<<"$1"
}

# package_names REGEX: the packages of these suites whose name matches all of it.
package_names() {
	apt-cache -c "$APT_CONFIG_FILE" pkgnames | grep -xE "$1" || true
}

# newest_version PACKAGE [VERSION-REGEX]
newest_version() {
	apt-cache -c "$APT_CONFIG_FILE" madison "$1" | want=^${2:-} awk '$3 ~ ENVIRON["want"] { print $3; exit }'
}

# fetch DIR PACKAGE [VERSION-REGEX]: download a package there, print the file's name.
fetch() {
	local version dir=$1
	version=$(newest_version "$2" "${3:-}")
	[[ -n $version ]] || return 1
	mkdir -p "$dir"
	(cd "$dir" && apt-get -c "$APT_CONFIG_FILE" -qq download "$2=$version" >&2) || return 1
	echo "$dir/$2"_*.deb
}
