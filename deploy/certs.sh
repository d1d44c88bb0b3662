#!/usr/bin/env bash
# Makes certificates to try mutual TLS: an authority, a coordinator and a worker. Needs only openssl.
#
#   deploy/certs.sh DIR [NAME…]      names and addresses by which workers dial; localhost 127.0.0.1 coordinator unless given
#                                    DAYS=30 unless set
#
# DIR/ca.key can sign certificates of members: keep it away from the workers, or delete it. For a permanent cluster,
# use your site's authority.
set -euo pipefail

fail() {
  echo "certs.sh: $*" >&2
  exit 2
}

[ $# -ge 1 ] || fail "expected a folder, as in: deploy/certs.sh certs coordinator.example 10.0.0.7"
command -v openssl >/dev/null || fail "openssl is not installed"
dir=$1
shift
[ $# -gt 0 ] || set -- localhost 127.0.0.1 coordinator
days=${DAYS:-30}
[[ $days =~ ^[1-9][0-9]{0,3}$ ]] || fail "DAYS: $days, expected a number of days"

alternatives=
for name in "$@"; do
  case $name in
    '' | *[!A-Za-z0-9.:*-]*) fail "$name: not the name or address of a host" ;;
    *:*) kind=IP ;;
    *[!0-9.]*) kind=DNS ;;
    *) kind=IP ;;
  esac
  alternatives+=,$kind:$name
done
alternatives=${alternatives#,}

for file in ca coordinator worker; do
  for kind in pem key; do
    [ ! -e "$dir/$file.$kind" ] || fail "$dir/$file.$kind exists already; choose another folder, or delete it"
  done
done

# Keys are never readable for other users, not even for a moment.
umask 077
mkdir -p "$dir"
work=$(mktemp -d "$dir/.certs.XXXXXX")
trap 'rm -rf "$work"' EXIT

quietly() {
  "$@" 2>"$work/errors" || fail "$(tr '\n' ' ' <"$work/errors")"
}

printf '[req]\ndistinguished_name = name\n[name]\n' >"$work/request.conf"

# key NAME
key() {
  quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$work/$1.key"
}

# leaf NAME ALTERNATIVE-NAMES USAGE
leaf() {
  key "$1"
  printf 'subjectAltName = %s\nextendedKeyUsage = %s\nkeyUsage = critical,digitalSignature\n' "$2" "$3" \
    >"$work/extensions"
  quietly openssl req -new -config "$work/request.conf" -key "$work/$1.key" -subj "/CN=grammaton $1" \
    -out "$work/request"
  quietly openssl x509 -req -in "$work/request" -CA "$work/ca.pem" -CAkey "$work/ca.key" \
    -set_serial "0x$(openssl rand -hex 8)" -days "$days" -sha256 -extfile "$work/extensions" -out "$work/$1.pem"
}

key ca
printf '[req]\ndistinguished_name = name\nx509_extensions = authority\n[name]\n[authority]\n%s\n%s\n%s\n' \
  'basicConstraints = critical,CA:TRUE' 'keyUsage = critical,keyCertSign' 'subjectKeyIdentifier = hash' \
  >"$work/authority.conf"
quietly openssl req -x509 -new -config "$work/authority.conf" -key "$work/ca.key" -days "$days" -sha256 \
  -subj "/CN=grammaton trial authority" -out "$work/ca.pem"
leaf coordinator "$alternatives" serverAuth
leaf worker DNS:worker clientAuth

chmod 644 "$work"/{ca,coordinator,worker}.pem
mv "$work"/{ca,coordinator,worker}.{pem,key} "$dir/"

until=$(openssl x509 -in "$dir/ca.pem" -noout -enddate)
cat <<TEXT
$dir: ca, coordinator (for $*) and worker, each .pem and .key; valid for $days days, until ${until#notAfter=}
  grammaton train JOB.toml --listen ADDR --cert $dir/coordinator.pem --key $dir/coordinator.key --ca $dir/ca.pem
  grammaton worker --coordinator https://$1:PORT --ca $dir/ca.pem --cert $dir/worker.pem --key $dir/worker.key
TEXT
