/** Lowers `transport http { … }`. */
import { parseIp } from '../../../exchange/ip-address.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { warnNoEffect } from '../../words/single-value.ts';
import type { UpstreamDraft } from './lower-upstream.ts';
import { parseForwardProxy } from './transports/forward-proxy.ts';
import { type ClientTlsDraft, clientTlsOptions } from './transports/lower-client-tls.ts';
import { parseTransportDuration } from './transports/transport-duration.ts';
import {
	type HttpTransportSettings,
	type HttpTransportVersion,
	MAX_READ_BUFFER_BYTES,
	MIN_READ_BUFFER_BYTES,
} from './transports/transport-settings.ts';

type HttpDraft = { -readonly [K in keyof HttpTransportSettings]: HttpTransportSettings[K] };

/**
 * Lowers the block into the pool's draft. Settings that all transports have are set in the draft itself; `transport` is set if the
 * block has other settings.
 */
export function lowerHttpTransport(line: Line, poolDraft: UpstreamDraft, cx: LowerContext): void {
	const transportDraft: HttpDraft = { type: 'http' };
	let tlsDraft: ClientTlsDraft | undefined;
	const requireSingleWord = (words: readonly Word[], innerLine: Line, usage: string): Word | undefined =>
		cx.noBlock(innerLine) && cx.count(innerLine, words, 1, 1, usage) ? words[0] : undefined;
	const durationHandler =
		(
			name: 'read_timeout' | 'write_timeout' | 'expect_continue_timeout' | 'dial_fallback_delay' | 'keepalive_interval',
		): SubdirectiveHandler =>
		(words, innerLine) => {
			const value = parseTransportDuration(words, innerLine, cx);
			if (value !== undefined) transportDraft[name] = value;
		};
	const poolDurationHandler =
		(name: 'connect_timeout' | 'response_header_timeout' | 'keepalive'): SubdirectiveHandler =>
		(words, innerLine) => {
			const value = parseTransportDuration(words, innerLine, cx);
			if (value !== undefined) poolDraft[name] = value;
		};
	const parseSize = (words: readonly Word[], innerLine: Line): number | undefined => {
		const word = requireSingleWord(words, innerLine, `${innerLine.words[0]!.text} <size>`);
		return word && cx.size(word);
	};
	const setForwardProxy = (word: Word): void => {
		const proxySettings = parseForwardProxy(word.text);
		if (typeof proxySettings !== 'string') transportDraft.forward_proxy = proxySettings;
		else cx.problem('error', 'upstream/forward-proxy', word.span, proxySettings, { hint: 'Write http://host:port.' });
	};
	const parseCount = (words: readonly Word[], innerLine: Line, min: number): number | undefined => {
		const word = requireSingleWord(words, innerLine, `${innerLine.words[0]!.text} <number>`);
		return word && cx.integer(word, min, 1_000_000);
	};
	const optionHandlers: { [option: string]: SubdirectiveHandler } = {
		dial_timeout: poolDurationHandler('connect_timeout'),
		dial_fallback_delay: (words, innerLine) => {
			if (words.length === 1 && words[0]!.text.startsWith('-')) transportDraft.dial_fallback_delay = -1;
			else durationHandler('dial_fallback_delay')(words, innerLine);
		},
		response_header_timeout: poolDurationHandler('response_header_timeout'),
		expect_continue_timeout: durationHandler('expect_continue_timeout'),
		read_timeout: durationHandler('read_timeout'),
		write_timeout: durationHandler('write_timeout'),
		read_buffer: (words, innerLine) => {
			const size = parseSize(words, innerLine);
			if (size !== undefined)
				transportDraft.read_buffer = Math.min(Math.max(size, MIN_READ_BUFFER_BYTES), MAX_READ_BUFFER_BYTES);
		},
		write_buffer: (words, innerLine) => {
			if (parseSize(words, innerLine) !== undefined) warnNoEffect(innerLine, 'data is sent immediately', cx);
		},
		max_response_header: (words, innerLine) => {
			const size = parseSize(words, innerLine);
			if (size !== undefined) poolDraft.max_response_header = Math.max(size, 1024);
		},
		keepalive: (words, innerLine) => {
			if (words.length === 1 && words[0]!.text === 'off') poolDraft.keepalive = 0;
			else poolDurationHandler('keepalive')(words, innerLine);
		},
		keepalive_interval: durationHandler('keepalive_interval'),
		keepalive_idle_conns: (words, innerLine) => {
			const value = parseCount(words, innerLine, 0);
			if (value !== undefined) transportDraft.keepalive_idle_conns_total = value;
		},
		keepalive_idle_conns_per_host: (words, innerLine) => {
			const value = parseCount(words, innerLine, 0);
			if (value !== undefined) poolDraft.keepalive_idle_conns = value;
		},
		max_conns_per_host: (words, innerLine) => {
			const value = parseCount(words, innerLine, 0);
			if (value) transportDraft.max_conns_per_host = value;
		},
		versions: (words, innerLine) => {
			const versions = lowerVersions(words, innerLine, cx);
			if (versions) transportDraft.versions = versions;
		},
		compression: (words, innerLine) => {
			// In a Compatfile, `compression` without arguments is accepted, and leaves the default unchanged.
			if (words.length === 0 && cx.dialect === 'compatfile') return;
			const word = requireSingleWord(words, innerLine, 'compression on|off');
			const value = word && cx.boolean(word);
			if (value !== undefined) transportDraft.compression = value;
		},
		proxy_protocol: (words, innerLine) => {
			const word = requireSingleWord(words, innerLine, 'proxy_protocol v1|v2');
			if (!word) return;
			if (word.text === 'v1' || word.text === 'v2') transportDraft.proxy_protocol = word.text;
			else {
				const message = `invalid proxy protocol version '${word.text}'`;
				cx.problem('error', 'upstream/proxy-protocol', word.span, message, { hint: 'Write v1 or v2.' });
			}
		},
		network_proxy: (words, innerLine) => {
			if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, 2, 'network_proxy none | network_proxy url <url>'))
				return;
			const proxyKind = cx.oneOf(words[0]!, ['none', 'url'], 'kind of proxy');
			if (proxyKind === 'none' && cx.count(innerLine, words, 1, 1, 'network_proxy none'))
				transportDraft.forward_proxy = 'none';
			else if (proxyKind === 'url' && cx.count(innerLine, words, 2, 2, 'network_proxy url <url>'))
				setForwardProxy(words[1]!);
		},
		resolvers: (words, innerLine) => {
			if (!cx.noBlock(innerLine) || !cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'resolvers <address>…'))
				return;
			const resolverAddresses = words.map(word => lowerResolver(word, cx)).filter(server => server !== undefined);
			transportDraft.resolvers = [...(transportDraft.resolvers ?? []), ...resolverAddresses];
		},
		local_address: (words, innerLine) => {
			const word = requireSingleWord(words, innerLine, 'local_address <ip>');
			if (!word) return;
			if (parseIp(word.text)) transportDraft.local_address = word.text;
			else cx.problem('error', 'value/not-an-address', word.span, `\`${word.text}\` is not an IP address.`);
		},
		...clientTlsOptions(() => {
			tlsDraft ??= {};
			return tlsDraft;
		}, cx),
	};
	/** Lowers `forward_proxy_url`, an obsolete option that existing Compatfiles contain. */
	const lowerForwardProxyUrl: SubdirectiveHandler = (words, innerLine) => {
		if (cx.dialect === 'configfile') {
			const message = '`forward_proxy_url` is written `network_proxy url` here.';
			cx.problem('error', 'directive/old-spelling', innerLine.words[0]!.span, message);
			return;
		}
		const word = requireSingleWord(words, innerLine, 'forward_proxy_url <url>');
		if (word?.text === 'none') transportDraft.forward_proxy = 'none';
		else if (word) setForwardProxy(word);
	};
	Object.defineProperty(optionHandlers, 'forward_proxy_url', { value: lowerForwardProxyUrl, enumerable: false });
	cx.subdirectives(line.block, optionHandlers, 'transport http');
	if (tlsDraft) transportDraft.tls = tlsDraft;
	if (
		transportDraft.versions?.includes('h2c') &&
		tlsDraft &&
		cx.dialect === 'compatfile' &&
		transportDraft.versions.length > 1
	) {
		transportDraft.versions = withoutPlainText(transportDraft.versions);
	} else if (transportDraft.versions?.includes('h2c') && tlsDraft) {
		const message = 'HTTP/2 in plain text (`h2c`) cannot be combined with TLS.';
		cx.problem('error', 'upstream/h2c-over-tls', line.words[0]!.span, message, {
			hint: 'Over TLS, write `versions 2`.',
		});
	}
	if (Object.keys(transportDraft).length > 1) poolDraft.transport = transportDraft;
}

/** Returns the versions without `h2c`, which Caddy ignores if the transport uses TLS. */
export function withoutPlainText(versions: readonly HttpTransportVersion[]): HttpTransportVersion[] {
	return versions.filter(version => version !== 'h2c');
}

function lowerVersions(words: readonly Word[], line: Line, cx: LowerContext): HttpTransportVersion[] | undefined {
	if (!cx.noBlock(line) || !cx.count(line, words, 1, 4, 'versions 1.1|2|h2c…')) return undefined;
	const versions = new Set<HttpTransportVersion>();
	for (const word of words) {
		const version = cx.oneOf(word, ['1.1', '2', 'h2c', '3'], 'version of HTTP');
		if (version === '3') {
			const message = 'HTTP version `3` to upstreams is not supported by this build yet.';
			cx.problem('error', 'directive/unavailable', word.span, message);
			return undefined;
		}
		if (version === undefined) return undefined;
		versions.add(version);
	}
	return [...versions].sort();
}

function lowerResolver(word: Word, cx: LowerContext): string | undefined {
	const addressText = word.text.replace(/^udp\//, '');
	const bracketedMatch = /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(addressText);
	const unbracketedMatch = /^([^:]+)(?::(\d{1,5}))?$/.exec(addressText);
	const isBareIpv6 = parseIp(addressText)?.isIpv4 === false;
	const host = isBareIpv6 ? addressText : (bracketedMatch?.[1] ?? unbracketedMatch?.[1] ?? '');
	const port = Number((isBareIpv6 ? undefined : (bracketedMatch?.[2] ?? unbracketedMatch?.[2])) ?? 53);
	const address = parseIp(host);
	if (!address || port < 1 || port > 65535) {
		const message = `\`${word.text}\` is not the address of a DNS server.`;
		cx.problem('error', 'value/not-an-address', word.span, message, {
			hint: 'Write an IP address, with or without a port.',
		});
		return undefined;
	}
	return !address.isIpv4 ? `[${host}]:${port}` : `${host}:${port}`;
}
