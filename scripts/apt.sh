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
# packages, which a comma divides.  A half-made one is not left under its name.
make_debian_root() {
	local root=$1 suite=$2 packages=$3 work=$1.new url
	shift 3
	url=$(mirror) || return
	remove_root "$work"
	mkdir -p "$work"
	mmdebstrap --quiet --variant=minbase --format=tar --include="$packages" \
		--aptopt='Acquire::Languages "none"' "$@" "$suite" - "$url" |
		as_root tar -x -C "$work" --exclude='./dev/*' || return
	mv "$work" "$root"
}

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
			apt-get -c "$APT_CONFIG_FILE" -qq update >&2 || say "some suites cannot be fetched from $url"
			cp "$dir/sources.list" "$dir/updated"
		fi
	) 6>"$dir/lock"
}

# lay_apt DIR URL SUITE...: what apt has to be told.  Clearing the hooks keeps the
# system's own clean-up away from its archives.
lay_apt() {
	local dir=$1 url=$2 suite
	shift 2
	for suite; do
		echo "deb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url $suite main"
	done >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-END
		APT::Architecture "amd64";
		APT::Architectures "amd64";
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State::lists "$dir/lists";
		Dir::Cache "$dir";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		APT::Sandbox::User "$(id -un)";
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear DPkg::Post-Invoke;
	END
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
	apt-cache -c "$APT_CONFIG_FILE" madison "$1" | awk -v want="^${2:-}" '$3 ~ want { print $3; exit }'
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
