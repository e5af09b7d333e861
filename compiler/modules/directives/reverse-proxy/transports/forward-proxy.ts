/** Parses the URLs of forward proxies, through which upstreams are reached. */
import type { ForwardProxySettings } from './transport-settings.ts';

/**
 * Parses the URL of a forward proxy. The user and password are removed from the URL and returned separately, so that they can be
 * redacted. If the URL is invalid, returns the reason, which does not quote the URL.
 */
export function parseForwardProxy(text: string): ForwardProxySettings | string {
	let url: URL;
	try {
		url = new URL(text.includes('://') ? text : `http://${text}`);
	} catch {
		return 'This is not the URL of a proxy.';
	}
	const scheme = url.protocol.slice(0, -1);
	if (scheme !== 'http' && scheme !== 'https' && scheme !== 'socks5' && scheme !== 'socks5h') {
		return `The scheme \`${scheme}\` is not supported for a proxy; supported are http, https and socks5.`;
	}
	if (url.hostname === '' || url.search !== '' || url.hash !== '' || (url.pathname !== '' && url.pathname !== '/')) {
		return 'The URL of a proxy consists of scheme, host and port only.';
	}
	const defaultPort = scheme === 'http' ? 80 : scheme === 'https' ? 443 : 1080;
	const urlWithoutCredentials = `${scheme === 'socks5h' ? 'socks5' : scheme}://${url.hostname}:${url.port || defaultPort}`;
	return {
		url: urlWithoutCredentials,
		...(url.username === '' ? {} : { username: decodePercentLeniently(url.username) }),
		...(url.password === '' ? {} : { password: decodePercentLeniently(url.password) }),
	};
}

function decodePercentLeniently(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
