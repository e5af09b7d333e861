/** sprig's functions for file paths and URLs. */
import { posix } from 'node:path';
import { defineFunction, type FunctionList } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { asDictionary, type Dictionary, type Value } from '../value.ts';

const base = defineFunction('string', (_, path: string) => (path === '' ? '.' : posix.basename(path) || '/'));
const dir = defineFunction('string', (_, path: string) => posix.dirname(clean(path === '' ? '.' : path)));
const cleaned = defineFunction('string', (_, path: string) => clean(path));
const ext = defineFunction('string', (_, path: string) => /\.[^./]*$/.exec(path)?.[0] ?? '');
const isAbs = defineFunction('string', (_, path: string) => path.startsWith('/'));

/** sprig's functions from `base` to `urlJoin`. */
export const ADDRESS_FUNCTIONS: FunctionList = {
	base,
	dir,
	clean: cleaned,
	ext,
	isAbs,
	osBase: base,
	osDir: dir,
	osClean: cleaned,
	osExt: ext,
	osIsAbs: isAbs,
	urlParse: defineFunction('string', parseUrl),
	urlJoin: defineFunction('dict', (_, parts: Dictionary) => joinUrl(parts)),
};

function clean(path: string): string {
	const normal = posix.normalize(path);
	return normal.length > 1 && normal.endsWith('/') ? normal.slice(0, -1) : normal;
}

/** The regular expression of RFC 3986, appendix B. It matches any string. */
const URL_PARTS = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;

function parseUrl(run: TemplateRun, url: string): Value {
	const parts = URL_PARTS.exec(url);
	if (!parts || /[\0-\x20\x7f]/.test(parts[2] ?? '')) return run.fail(`unable to parse URL "${url}"`);
	const [, scheme = '', authority = '', path = '', query = '', fragment = ''] = parts;
	const at = authority.lastIndexOf('@');
	const host = authority.slice(at + 1);
	const opaque = scheme !== '' && authority === '' && !path.startsWith('/');
	return new Map<string, Value>([
		['scheme', scheme.toLowerCase()],
		['userinfo', at === -1 ? '' : authority.slice(0, at)],
		['host', host],
		['hostname', host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1')],
		['path', opaque ? '' : decoded(path)],
		['opaque', opaque ? path : ''],
		['query', query],
		['fragment', decoded(fragment)],
	]);
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

function joinUrl(parts: Dictionary): string {
	const part = (name: string): string => {
		const value = asDictionary(parts)?.get(name);
		return typeof value === 'string' ? value : '';
	};
	const scheme = part('scheme');
	const userinfo = part('userinfo');
	const host = part('host');
	const path = part('path');
	const authority = userinfo === '' ? host : `${userinfo}@${host}`;
	let url = scheme === '' ? '' : `${scheme}:`;
	if (part('opaque') !== '') url += part('opaque');
	else {
		if (scheme !== '' || authority !== '') url += authority === '' && path === '' ? '' : `//${authority}`;
		if (path !== '' && !path.startsWith('/') && authority !== '') url += '/';
		url += encodeURI(path.toWellFormed()).replace(/[?#]/g, encodeURIComponent);
	}
	if (part('query') !== '') url += `?${part('query')}`;
	return part('fragment') === '' ? url : `${url}#${encodeURI(part('fragment').toWellFormed())}`;
}
