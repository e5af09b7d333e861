/** sprig's functions for file paths and URLs. */
import { posix } from 'node:path';
import { defineFunction, type FunctionList } from '../function.ts';
import type { TemplateRun } from '../run.ts';
import { asDictionary, type Dictionary, type Value } from '../value.ts';

const baseName = defineFunction('string', (_, path: string) => (path === '' ? '.' : posix.basename(path) || '/'));
const dirName = defineFunction('string', (_, path: string) => posix.dirname(cleanPath(path === '' ? '.' : path)));
const cleanPathFunction = defineFunction('string', (_, path: string) => cleanPath(path));
const ext = defineFunction('string', (_, path: string) => /\.[^./]*$/.exec(path)?.[0] ?? '');
const isAbs = defineFunction('string', (_, path: string) => path.startsWith('/'));

export const ADDRESS_FUNCTIONS: FunctionList = {
	base: baseName,
	dir: dirName,
	clean: cleanPathFunction,
	ext,
	isAbs,
	osBase: baseName,
	osDir: dirName,
	osClean: cleanPathFunction,
	osExt: ext,
	osIsAbs: isAbs,
	urlParse: defineFunction('string', parseUrl),
	urlJoin: defineFunction('dict', (_, parts: Dictionary) => joinUrl(parts)),
};

function cleanPath(path: string): string {
	const normalizedPath = posix.normalize(path);
	return normalizedPath.length > 1 && normalizedPath.endsWith('/') ? normalizedPath.slice(0, -1) : normalizedPath;
}

/** The regular expression of RFC 3986, appendix B. It matches any string. */
const URL_PARTS_PATTERN = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;

function parseUrl(run: TemplateRun, url: string): Value {
	const urlMatch = URL_PARTS_PATTERN.exec(url);
	if (!urlMatch || /[\0-\x20\x7f]/.test(urlMatch[2] ?? '')) return run.fail(`unable to parse URL "${url}"`);
	const [, scheme = '', authority = '', path = '', query = '', fragment = ''] = urlMatch;
	const userinfoEnd = authority.lastIndexOf('@');
	const host = authority.slice(userinfoEnd + 1);
	const isOpaque = scheme !== '' && authority === '' && !path.startsWith('/');
	return new Map<string, Value>([
		['scheme', scheme.toLowerCase()],
		['userinfo', userinfoEnd === -1 ? '' : authority.slice(0, userinfoEnd)],
		['host', host],
		['hostname', host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1')],
		['path', isOpaque ? '' : decodeOrKeep(path)],
		['opaque', isOpaque ? path : ''],
		['query', query],
		['fragment', decodeOrKeep(fragment)],
	]);
}

function decodeOrKeep(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

function joinUrl(parts: Dictionary): string {
	const textPart = (name: string): string => {
		const value = asDictionary(parts)?.get(name);
		return typeof value === 'string' ? value : '';
	};
	const scheme = textPart('scheme');
	const userinfo = textPart('userinfo');
	const host = textPart('host');
	const path = textPart('path');
	const authority = userinfo === '' ? host : `${userinfo}@${host}`;
	let url = scheme === '' ? '' : `${scheme}:`;
	if (textPart('opaque') !== '') url += textPart('opaque');
	else {
		if (scheme !== '' || authority !== '') url += authority === '' && path === '' ? '' : `//${authority}`;
		if (path !== '' && !path.startsWith('/') && authority !== '') url += '/';
		url += encodeURI(path.toWellFormed()).replace(/[?#]/g, encodeURIComponent);
	}
	if (textPart('query') !== '') url += `?${textPart('query')}`;
	return textPart('fragment') === '' ? url : `${url}#${encodeURI(textPart('fragment').toWellFormed())}`;
}
