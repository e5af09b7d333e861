/** Builds the variables that describe a request to a FastCGI application (RFC 3875 §4.1). */

import { compileRoot } from '../../../codegen/context/file-root.ts';
import { hostAsSent, parseAuthority } from '../../../exchange/authority.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { VIA_NAME } from '../../../exchange/forwarded-request.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { FileReader } from '../../../exchange/leases.ts';
import { normalizedPath } from '../../../exchange/request-path.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { USER_VARIABLE } from '../basic-auth/basic-auth-handler.ts';
import type { FastcgiTransportSettings } from './transports/transport-settings.ts';

/** Returns alternating names and values, as bytes in latin1. `headers` are the fields sent to the application. */
export type CgiVariables = (x: Exchange, headers: HeaderList) => readonly string[];

/** Compiles the variables of a transport, except the method and the length of the body. */
export function compileCgiVariables(settings: FastcgiTransportSettings, cx: CompileContext): CgiVariables {
	const folder = compileRoot(settings.root, cx);
	const siteFolder = settings.root === undefined ? undefined : compileRoot(undefined, cx);
	const files = cx.lease('files', {});
	const resolved = settings.resolve_root_symlink ? withoutLinks(files) : undefined;
	const splits = settings.split ?? [];
	const remainder = cx.placeholder('http.matchers.file.remainder');
	const own = (settings.env ?? []).map(({ name, value }) => ({
		name: bytes(name),
		value: cx.template(value, 'empty'),
	}));
	return (x, headers) => {
		const written = folder(x);
		const root = resolved ? resolved(written, x.now()) : written;
		const path = normalizedPath(x.request);
		const position = splitPosition(path, splits);
		const script = path.slice(0, position);
		if (splits.length > 0) refuseBelowFile(files, script, root, siteFolder?.(x));
		let info = path.slice(position);
		if (info === '') {
			const rest = remainder?.(x);
			if (typeof rest === 'string') info = rest;
		}
		const { request, received, connection } = x;
		const authority = headers.get('host') ?? request.authority;
		const port = parseAuthority(authority)?.port;
		const secure = request.scheme === 'https';
		const user = x.variable(USER_VARIABLE);
		const query = received.query === undefined ? '' : `?${received.query}`;
		const list = [
			...['GATEWAY_INTERFACE', 'CGI/1.1', 'SERVER_SOFTWARE', VIA_NAME, 'AUTH_TYPE', '', 'REMOTE_IDENT', ''],
			...[
				'SERVER_PROTOCOL',
				x.protocol,
				'SERVER_NAME',
				bytes(hostAsSent(authority)),
				'SERVER_PORT',
				String(port ?? (secure ? 443 : 80)),
			],
			...['REQUEST_SCHEME', request.scheme, 'REQUEST_URI', `${received.path}${query}`],
			...['QUERY_STRING', request.query ?? '', 'DOCUMENT_ROOT', bytes(root), 'DOCUMENT_URI', bytes(script)],
			...['SCRIPT_NAME', bytes(script), 'SCRIPT_FILENAME', bytes(join(root, script)), 'PATH_INFO', bytes(info)],
			...['REMOTE_ADDR', connection.remoteAddress, 'REMOTE_HOST', connection.remoteAddress],
			...['REMOTE_PORT', String(connection.remotePort), 'REMOTE_USER', typeof user === 'string' ? bytes(user) : ''],
			...['CONTENT_TYPE', headers.get('content-type') ?? (takesForm(request.method) ? FORM : '')],
		];
		// A connection over a Unix socket has no address.
		if (connection.localAddress !== '') list.push('SERVER_ADDR', connection.localAddress);
		if (info !== '') list.push('PATH_TRANSLATED', bytes(join(root, info)));
		if (secure) list.push('HTTPS', 'on');
		if (connection.tls)
			list.push('SSL_PROTOCOL', sslProtocol(connection.tls.version), 'SSL_CIPHER', connection.tls.cipherSuite);
		addFields(headers, list);
		for (const { name, value } of own)
			setVariable(list, name, bytes(value.constant ?? value.render(x)).replaceAll('\0', ''));
		return list;
	};
}

/** CONTENT_TYPE of a request without one, if its method usually has a body. The compatible server uses the same default. */
const FORM = 'application/x-www-form-urlencoded';

function takesForm(method: string): boolean {
	return method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
}

/**
 * Guards against a feature of PHP: if a script does not exist, PHP executes the nearest existing parent path. A request for
 * `/x.jpg/y.php` would execute the upload `x.jpg`. Throws HttpError 404 for such a path. `root` may be a folder of another
 * machine or container, whose files cannot be checked; `siteRoot` is then the corresponding folder on this machine.
 */
function refuseBelowFile(files: FileReader, script: string, root: string, siteRoot: string | undefined): void {
	if (script.lastIndexOf('/') <= 0) return;
	const isFile = (path: string): boolean =>
		files.kind(root, path, true) === 'file' ||
		(siteRoot !== undefined && siteRoot !== root && files.kind(siteRoot, path, true) === 'file');
	if (isFile(script)) return;
	for (let at = script.lastIndexOf('/'); at > 0; at = script.lastIndexOf('/', at - 1)) {
		if (isFile(script.slice(0, at))) throw new HttpError(404, 'The script is below a file.');
	}
}

/** Milliseconds for which a resolved folder is cached. */
const LINKS_KEPT = 1000;

/** Resolves the symbolic links of a folder, with a cache. */
function withoutLinks(files: FileReader): (folder: string, now: number) => string {
	let last = { folder: '', real: '', at: 0 };
	return (folder, now) => {
		if (folder !== last.folder || now - last.at > LINKS_KEPT || now < last.at) {
			last = { folder, real: files.realPath?.(folder) ?? folder, at: now };
		}
		return last.real;
	};
}

/**
 * Adds `HTTP_*`, except the length. Skips fields whose variable would collide with another field's (`X_A` and `X-A`), and
 * `Proxy`, whose variable libraries mistake for the setting of a forward proxy (CVE-2016-5385).
 */
function addFields(headers: HeaderList, list: string[]): void {
	const seen = new Map<string, number>();
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i);
		if (!/^[A-Za-z0-9-]+$/.test(name)) continue;
		const variable = `HTTP_${name.toUpperCase().replaceAll('-', '_')}`;
		if (variable === 'HTTP_PROXY') continue;
		const at = seen.get(variable);
		if (at === undefined) seen.set(variable, list.push(variable, headers.valueAt(i)) - 1);
		else list[at] = `${list[at]}${variable === 'HTTP_COOKIE' ? '; ' : ', '}${headers.valueAt(i)}`;
	}
	if (!seen.has('HTTP_USER_AGENT')) list.push('HTTP_USER_AGENT', '');
}

function setVariable(list: string[], name: string, value: string): void {
	for (let at = 0; at < list.length; at += 2) {
		if (list[at] === name) {
			list[at + 1] = value;
			return;
		}
	}
	list.push(name, value);
}

/** Joins a path to the root. The path has already been cleaned, so it cannot lead out of the root. */
function join(root: string, path: string): string {
	const below = path.startsWith('/') ? path : `/${path}`;
	return root.endsWith('/') ? `${root.slice(0, -1)}${below}` : `${root}${below}`;
}

/** Returns a TLS version in Apache's spelling, such as `TLSv1.3`. */
function sslProtocol(version: string): string {
	const number = /(\d)\.(\d)$/.exec(version);
	return number ? `TLSv${number[1]}${number[2] === '0' ? '' : `.${number[2]}`}` : version;
}

/** Encodes a string as UTF-8, and returns the bytes as a latin1 string. */
function bytes(text: string): string {
	return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

function isAscii(text: string): boolean {
	for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
	return true;
}

/**
 * Returns the position after the first extension that ends a segment; the length of the path if there is none. For example,
 * `/a.phpx/b.php` does not contain a script `/a.php`. Only ASCII letters are compared case-insensitively: changing the case of
 * others may change their length.
 */
function splitPosition(path: string, splits: readonly string[]): number {
	const subject = lowered(path);
	for (const split of splits) {
		const wanted = lowered(split);
		for (let at = subject.indexOf(wanted); at !== -1; at = subject.indexOf(wanted, at + 1)) {
			const end = at + wanted.length;
			if (end === path.length || path[end] === '/') return end;
		}
	}
	return path.length;
}

function lowered(text: string): string {
	return text.replace(/[A-Z]+/g, letters => letters.toLowerCase());
}
