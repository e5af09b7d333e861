/** URLs of proxies through which upstreams are reached. */
import type { ForwardProxySettings } from './transport-settings.ts';

/**
 * Parses the URL; user and password are separated, so that they can be redacted. A returned string says what is wrong, without
 * quoting the URL.
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
	const plain = `${scheme === 'socks5h' ? 'socks5' : scheme}://${url.hostname}:${url.port || defaultPort}`;
	return {
		url: plain,
		...(url.username === '' ? {} : { username: decode(url.username) }),
		...(url.password === '' ? {} : { password: decode(url.password) }),
	};
}

function decode(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}
