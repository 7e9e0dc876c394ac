#!/bin/sh
# Installs the interpreter into a sandbox, a base or an image, as root. Packages that code may import are to be named:
#   install.sh numpy pandas
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=/opt/code-interpreter
python=${PYTHON:-python3}
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends python3 python3-venv
fi
"$python" -m venv "$to"
"$to/bin/pip" install -q --no-cache-dir ipykernel==7.4.0 jupyter-client==8.10.0 e2b-charts==1.0.0 "$@"
cp "$here/server.py" "$here/kernel.py" "$to/"
cat >"$to/start" <<END
#!/bin/sh
export PATH=$to/bin:\$PATH
exec $to/bin/python $to/server.py
END
chmod 755 "$to/start"
# Commands use the same Python, and its user may install into it.
for name in python python3 pip pip3; do
	printf '#!/bin/sh\nexec %s "$@"\n' "$to/bin/$name" >"/usr/local/bin/$name"
	chmod 755 "/usr/local/bin/$name"
done
chmod -R a+rwX "$to"
