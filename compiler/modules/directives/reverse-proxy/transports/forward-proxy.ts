/** URLs of proxies that connections to upstreams are made through. */
import type { ForwardProxySettings } from './transport-settings.ts';

/** Reads the URL; its user and password stand apart, so that they can be hidden. A text says what is wrong, and quotes nothing. */
export function parseForwardProxy(text: string): ForwardProxySettings | string {
	let url: URL;
	try {
		url = new URL(text.includes('://') ? text : `http://${text}`);
	} catch {
		return 'This is not the URL of a proxy.';
	}
	const scheme = url.protocol.slice(0, -1);
	if (scheme !== 'http' && scheme !== 'https' && scheme !== 'socks5' && scheme !== 'socks5h') {
		return `A proxy with the scheme \`${scheme}\` is not known: there are http, https and socks5.`;
	}
	if (url.hostname === '' || url.search !== '' || url.hash !== '' || (url.pathname !== '' && url.pathname !== '/')) {
		return 'The URL of a proxy has a scheme, a host and a port only.';
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
