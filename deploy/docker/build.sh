#!/usr/bin/env bash
# Makes the image of `Dockerfile` from a program that is already built, within seconds and without network.
#
#   deploy/docker/build.sh [PROGRAM]      default: the static program that `.ci/dist` builds
#
# IMAGE: name of the image (grammaton). CERTIFICATES: file of the authorities that it trusts (this machine's). If PROGRAM is not static, its libraries
# are put into the image too, so that tests can use a program that is at hand.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-${CARGO_TARGET_DIR:-$here/../../target}/$(uname -m)-unknown-linux-musl/dist/grammaton}
certificates=${CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}
[ -f "$program" ] || { echo "$program is missing; build it with .ci/dist, or name a program" >&2; exit 2; }
[ -f "$certificates" ] || { echo "$certificates is missing; install the package ca-certificates, or set CERTIFICATES" >&2; exit 2; }

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
install -D -m 755 "$program" "$context/system/bin/grammaton"
strip "$context/system/bin/grammaton" 2>/dev/null || true
install -D -m 644 "$certificates" "$context/system/etc/ssl/certs/ca-certificates.crt"
for library in $(ldd "$program" 2>/dev/null | grep -o '/[^ )]*'); do
  install -D -m 755 "$library" "$context/system$library"
done
install -d -m 755 "$context/user/results"
install -d -m 1777 "$context/user/tmp"
docker build --quiet --network none -t "${IMAGE:-grammaton}" -f "$here/Dockerfile" "$context"
