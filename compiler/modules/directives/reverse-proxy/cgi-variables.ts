/** Builds the variables that describe a request to a FastCGI application (RFC 3875 §4.1). */

import { compileRoot } from '../../../codegen/context/file-root.ts';
import { hostAsSent, parseAuthority } from '../../../exchange/authority.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import { VIA_PSEUDONYM } from '../../../exchange/forwarded-request.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { FileReader } from '../../../exchange/leases.ts';
import { normalizedPath } from '../../../exchange/request-path.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { USER_VARIABLE } from '../basic-auth/basic-auth-handler.ts';
import type { FastcgiTransportSettings } from './transports/transport-settings.ts';

/**
 * Returns alternating names and values, as strings with one latin1 character for each byte. `headers` are the fields that are sent
 * to the application.
 */
export type CgiVariables = (x: Exchange, headers: HeaderList) => readonly string[];

/** Compiles the variables of a FastCGI transport, except REQUEST_METHOD and CONTENT_LENGTH. */
export function compileCgiVariables(settings: FastcgiTransportSettings, cx: CompileContext): CgiVariables {
	const rootOf = compileRoot(settings.root, cx);
	const siteRootOf = settings.root === undefined ? undefined : compileRoot(undefined, cx);
	const fileReader = cx.lease('files', {});
	const resolveLinks = settings.resolve_root_symlink ? compileLinkResolver(fileReader) : undefined;
	const extensions = settings.split ?? [];
	const fileRemainderOf = cx.placeholder('http.matchers.file.remainder');
	const extraVariables = (settings.env ?? []).map(({ name, value }) => ({
		name: utf8AsLatin1(name),
		value: cx.template(value, 'empty'),
	}));
	return (x, headers) => {
		const configuredRoot = rootOf(x);
		const root = resolveLinks ? resolveLinks(configuredRoot, x.now()) : configuredRoot;
		const path = normalizedPath(x.request);
		const scriptEnd = findScriptEnd(path, extensions);
		const scriptPath = path.slice(0, scriptEnd);
		if (extensions.length > 0) refusePathBelowFile(fileReader, scriptPath, root, siteRootOf?.(x));
		let pathInfo = path.slice(scriptEnd);
		if (pathInfo === '') {
			const unmatchedPath = fileRemainderOf?.(x);
			if (typeof unmatchedPath === 'string') pathInfo = unmatchedPath;
		}
		const { request, received, connection } = x;
		const authority = headers.get('host') ?? request.authority;
		const port = parseAuthority(authority)?.port;
		const isSecure = request.scheme === 'https';
		const authenticatedUser = x.variable(USER_VARIABLE);
		const query = received.query === undefined ? '' : `?${received.query}`;
		const variables = [
			...['GATEWAY_INTERFACE', 'CGI/1.1', 'SERVER_SOFTWARE', VIA_PSEUDONYM, 'AUTH_TYPE', '', 'REMOTE_IDENT', ''],
			...[
				'SERVER_PROTOCOL',
				x.protocol,
				'SERVER_NAME',
				utf8AsLatin1(hostAsSent(authority)),
				'SERVER_PORT',
				String(port ?? (isSecure ? 443 : 80)),
			],
			...['REQUEST_SCHEME', request.scheme, 'REQUEST_URI', `${received.path}${query}`],
			...[
				'QUERY_STRING',
				request.query ?? '',
				'DOCUMENT_ROOT',
				utf8AsLatin1(root),
				'DOCUMENT_URI',
				utf8AsLatin1(scriptPath),
			],
			...[
				'SCRIPT_NAME',
				utf8AsLatin1(scriptPath),
				'SCRIPT_FILENAME',
				utf8AsLatin1(joinToRoot(root, scriptPath)),
				'PATH_INFO',
				utf8AsLatin1(pathInfo),
			],
			...['REMOTE_ADDR', connection.remoteAddress, 'REMOTE_HOST', connection.remoteAddress],
			...[
				'REMOTE_PORT',
				String(connection.remotePort),
				'REMOTE_USER',
				typeof authenticatedUser === 'string' ? utf8AsLatin1(authenticatedUser) : '',
			],
			...['CONTENT_TYPE', headers.get('content-type') ?? (usuallyHasBody(request.method) ? DEFAULT_CONTENT_TYPE : '')],
		];
		// A connection over a Unix socket has no address.
		if (connection.localAddress !== '') variables.push('SERVER_ADDR', connection.localAddress);
		if (pathInfo !== '') variables.push('PATH_TRANSLATED', utf8AsLatin1(joinToRoot(root, pathInfo)));
		if (isSecure) variables.push('HTTPS', 'on');
		if (connection.tls)
			variables.push('SSL_PROTOCOL', sslProtocol(connection.tls.version), 'SSL_CIPHER', connection.tls.cipherSuite);
		addFieldVariables(headers, variables);
		for (const { name, value } of extraVariables)
			setVariable(variables, name, utf8AsLatin1(value.constant ?? value.render(x)).replaceAll('\0', ''));
		return variables;
	};
}

/**
 * CONTENT_TYPE of a request without `Content-Type`, if its method usually has a body. Caddy uses the same default.
 */
const DEFAULT_CONTENT_TYPE = 'application/x-www-form-urlencoded';

function usuallyHasBody(method: string): boolean {
	return method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS';
}

/**
 * Throws HttpError 404 for a script path below a file, such as `/x.jpg/y.php`. If a script does not exist, PHP executes the nearest
 * existing parent path, in this example the uploaded file `x.jpg`. `root` may be a folder of another machine or container, whose
 * files cannot be checked; `siteRoot` is then the corresponding folder on this machine.
 */
function refusePathBelowFile(
	fileReader: FileReader,
	scriptPath: string,
	root: string,
	siteRoot: string | undefined,
): void {
	if (scriptPath.lastIndexOf('/') <= 0) return;
	const isFile = (path: string): boolean =>
		fileReader.kind(root, path, true) === 'file' ||
		(siteRoot !== undefined && siteRoot !== root && fileReader.kind(siteRoot, path, true) === 'file');
	if (isFile(scriptPath)) return;
	for (let slash = scriptPath.lastIndexOf('/'); slash > 0; slash = scriptPath.lastIndexOf('/', slash - 1)) {
		if (isFile(scriptPath.slice(0, slash))) throw new HttpError(404, 'The script is below a file.');
	}
}

/** Milliseconds for which a resolved folder is cached. */
const LINK_CACHE_MS = 1000;

/** Returns a function that resolves the symbolic links in the path of a folder, with a cache. */
function compileLinkResolver(fileReader: FileReader): (folder: string, nowMs: number) => string {
	let cachedResolution = { folder: '', resolvedPath: '', resolvedAtMs: 0 };
	return (folder, nowMs) => {
		if (
			folder !== cachedResolution.folder ||
			nowMs - cachedResolution.resolvedAtMs > LINK_CACHE_MS ||
			nowMs < cachedResolution.resolvedAtMs
		) {
			cachedResolution = { folder, resolvedPath: fileReader.realPath?.(folder) ?? folder, resolvedAtMs: nowMs };
		}
		return cachedResolution.resolvedPath;
	};
}

/**
 * Adds the `HTTP_*` variables. Skips fields whose names contain characters other than letters, digits and hyphens, because their
 * variables could collide with variables of other fields (`X_A` and `X-A`). Also skips `Proxy`, because libraries mistake its
 * variable for the setting of a forward proxy (CVE-2016-5385).
 */
function addFieldVariables(headers: HeaderList, variables: string[]): void {
	const indexByVariable = new Map<string, number>();
	for (let i = 0, size = headers.size; i < size; i++) {
		const name = headers.nameAt(i);
		if (!/^[A-Za-z0-9-]+$/.test(name)) continue;
		const variableName = `HTTP_${name.toUpperCase().replaceAll('-', '_')}`;
		if (variableName === 'HTTP_PROXY') continue;
		const index = indexByVariable.get(variableName);
		if (index === undefined) indexByVariable.set(variableName, variables.push(variableName, headers.valueAt(i)) - 1);
		else variables[index] = `${variables[index]}${variableName === 'HTTP_COOKIE' ? '; ' : ', '}${headers.valueAt(i)}`;
	}
	if (!indexByVariable.has('HTTP_USER_AGENT')) variables.push('HTTP_USER_AGENT', '');
}

function setVariable(variables: string[], name: string, value: string): void {
	for (let index = 0; index < variables.length; index += 2) {
		if (variables[index] === name) {
			variables[index + 1] = value;
			return;
		}
	}
	variables.push(name, value);
}

/** Joins a path to the root. The path must be normalized, so that it cannot lead out of the root. */
function joinToRoot(root: string, path: string): string {
	const absolutePath = path.startsWith('/') ? path : `/${path}`;
	return root.endsWith('/') ? `${root.slice(0, -1)}${absolutePath}` : `${root}${absolutePath}`;
}

/** Returns a TLS version in Apache's spelling, such as `TLSv1.3`. */
function sslProtocol(version: string): string {
	const versionMatch = /(\d)\.(\d)$/.exec(version);
	return versionMatch ? `TLSv${versionMatch[1]}${versionMatch[2] === '0' ? '' : `.${versionMatch[2]}`}` : version;
}

/** Encodes a string as UTF-8, and returns the bytes as a latin1 string. */
function utf8AsLatin1(text: string): string {
	return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

function isAscii(text: string): boolean {
	for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
	return true;
}

/**
 * Returns the position after the first extension that ends a segment; the length of the path if no extension does. For example, the
 * script in `/a.phpx/b.php` is not `/a.php`. Only ASCII letters are compared case-insensitively: changing the case of other letters
 * may change the length of the text.
 */
function findScriptEnd(path: string, extensions: readonly string[]): number {
	const lowerPath = toAsciiLowerCase(path);
	for (const extension of extensions) {
		const lowerExtension = toAsciiLowerCase(extension);
		for (
			let start = lowerPath.indexOf(lowerExtension);
			start !== -1;
			start = lowerPath.indexOf(lowerExtension, start + 1)
		) {
			const end = start + lowerExtension.length;
			if (end === path.length || path[end] === '/') return end;
		}
	}
	return path.length;
}

function toAsciiLowerCase(text: string): string {
	return text.replace(/[A-Z]+/g, letters => letters.toLowerCase());
}
