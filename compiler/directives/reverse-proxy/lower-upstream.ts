/** Lowering of what text says about a pool of upstreams: in `reverse_proxy` and in `upstream <name> { … }` alike. */

import type { LowerContext, Subdirective } from '../../lower/lower-context.ts';
import { balancers, unavailableBalancers } from '../../providers/balancers/index.ts';
import type { Line, NamedBlock, Word } from '../../syntax/ast.ts';
import { parseUpstream } from './upstream-address.ts';

/** Settings of a pool while they are lowered. */
export interface UpstreamDraft {
	to: string[];
	balance?: { readonly policy: string; readonly [setting: string]: unknown };
	connect_timeout?: number;
	response_header_timeout?: number;
	max_response_header?: number;
	keepalive?: number;
	keepalive_idle_conns?: number;
}

/** Sub-directives about pools that come in a later build. */
export const UNAVAILABLE_OF_POOLS: readonly string[] = [
	...['dynamic', 'lb_retries', 'lb_try_duration', 'lb_try_interval', 'lb_retry_match', 'health_uri', 'health_path'],
	...['health_upstream', 'health_port', 'health_interval', 'health_timeout', 'health_passes', 'health_fails'],
	...['health_status', 'health_body', 'health_method', 'health_request_body', 'health_follow_redirects'],
	...['health_headers', 'fail_duration', 'max_fails', 'unhealthy_status', 'unhealthy_latency'],
	...['unhealthy_request_count'],
];

const UNAVAILABLE_TRANSPORT: readonly string[] = [
	...['read_buffer', 'write_buffer', 'read_timeout', 'write_timeout', 'proxy_protocol', 'dial_fallback_delay'],
	...['expect_continue_timeout', 'resolvers', 'forward_proxy_url', 'local_address', 'tls', 'tls_client_auth'],
	...['tls_insecure_skip_verify', 'tls_timeout', 'tls_server_name', 'tls_renegotiation', 'tls_except_ports'],
	...['tls_curves', 'tls_trust_pool', 'tls_trusted_ca_certs', 'keepalive_interval', 'keepalive_idle_conns'],
	...['max_conns_per_host'],
];

/** Lowers `upstream <name> { … }` to the settings of `upstreams.<name>`. */
export function lowerNamedUpstream(block: NamedBlock, cx: LowerContext): UpstreamDraft {
	const draft: UpstreamDraft = { to: [] };
	const known = refuseByName(poolSubdirectives(draft, cx), UNAVAILABLE_OF_POOLS, cx);
	const first = block.lines[0];
	const last = block.lines[block.lines.length - 1];
	if (first && last) {
		cx.subdirectives({ lines: block.lines, open: first.span, close: last.span }, known, 'upstream');
	}
	if (draft.to.length === 0 && !block.lines.some(line => line.words[0]!.text === 'to')) {
		cx.problem('error', 'upstream/empty', block.name.span, `The upstream \`${block.name.text}\` has no address.`, {
			hint: 'Add a line such as `to 127.0.0.1:8080`.',
		});
	}
	return draft;
}

/** Lowers address words into the draft. */
export function lowerAddresses(words: readonly Word[], draft: UpstreamDraft, cx: LowerContext): void {
	for (const word of words) {
		const text = cx.template(word);
		const parsed = parseUpstream(text);
		if (parsed.kind === 'static') draft.to.push(...parsed.addresses.map(({ address }) => address));
		else if (parsed.kind === 'template') draft.to.push(...parsed.texts);
		else {
			const message =
				cx.dialect === 'compatfile'
					? `parsing upstream '${word.text}': ${parsed.message}`
					: `\`${word.text}\` cannot be an upstream: ${parsed.message}.`;
			cx.problem('error', parsed.code, word.span, message, parsed.hint === undefined ? {} : { hint: parsed.hint });
		}
	}
}

/** The sub-directives that fill the draft. */
export function poolSubdirectives(draft: UpstreamDraft, cx: LowerContext): { [name: string]: Subdirective } {
	let transport = false;
	const known: { [name: string]: Subdirective } = {
		to: (args, line) => {
			if (cx.noBlock(line) && cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'to <upstream>…')) {
				lowerAddresses(args, draft, cx);
			}
		},
		lb_policy: (args, line) => lowerPolicy(args, line, draft, cx),
		transport: (args, line) => {
			if (transport) {
				cx.problem('error', 'upstream/transport-twice', line.words[0]!.span, 'transport already specified');
				return;
			}
			transport = true;
			lowerTransport(args, line, draft, cx);
		},
	};
	return known;
}

/**
 * Adds sub-directives that are refused by name. They are not enumerable: hints that list what can be written leave them out.
 */
export function refuseByName(
	known: { readonly [name: string]: Subdirective },
	names: readonly string[],
	cx: LowerContext,
): { readonly [name: string]: Subdirective } {
	const all = { ...known };
	const refuse: Subdirective = (_args, line) => {
		const name = line.words[0]!;
		cx.problem('error', 'directive/unavailable', name.span, `\`${name.text}\` is not part of this build yet.`);
	};
	for (const name of names) Object.defineProperty(all, name, { value: refuse, enumerable: false });
	return all;
}

function lowerPolicy(args: readonly Word[], line: Line, draft: UpstreamDraft, cx: LowerContext): void {
	if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'lb_policy <policy> [<argument>…]')) return;
	const [name, ...rest] = args as [Word, ...Word[]];
	if (unavailableBalancers.includes(name.text)) {
		const message = `The balancing policy \`${name.text}\` is not part of this build yet.`;
		cx.problem('error', 'directive/unavailable', name.span, message);
		return;
	}
	const ids = balancers.map(({ id }) => id);
	const policy = cx.oneOf(name, ids, 'balancing policy');
	const balancer = balancers.find(({ id }) => id === policy);
	if (!balancer || !cx.noBlock(line)) return;
	draft.balance = { policy: balancer.id, ...balancer.lower(rest, cx) };
}

function lowerTransport(args: readonly Word[], line: Line, draft: UpstreamDraft, cx: LowerContext): void {
	if (!cx.count(line, args, 1, 1, 'transport http { … }')) return;
	const name = args[0]!;
	if (name.text === 'fastcgi') {
		cx.problem('error', 'directive/unavailable', name.span, 'The transport `fastcgi` is not part of this build yet.');
		return;
	}
	if (cx.oneOf(name, ['http'], 'transport') === undefined) return;
	const known: { [option: string]: Subdirective } = {
		dial_timeout: (words, at) => assign(draft, 'connect_timeout', oneDuration(words, at, cx)),
		response_header_timeout: (words, at) => assign(draft, 'response_header_timeout', oneDuration(words, at, cx)),
		max_response_header: (words, at) => {
			if (cx.count(at, words, 1, 1, 'max_response_header <size>')) {
				const size = cx.size(words[0]!);
				assign(draft, 'max_response_header', size === undefined ? undefined : Math.max(size, 1024));
			}
		},
		keepalive: (words, at) => {
			if (words.length === 1 && words[0]!.text === 'off') draft.keepalive = 0;
			else assign(draft, 'keepalive', oneDuration(words, at, cx));
		},
		keepalive_idle_conns_per_host: (words, at) => {
			if (cx.count(at, words, 1, 1, 'keepalive_idle_conns_per_host <number>')) {
				assign(draft, 'keepalive_idle_conns', cx.integer(words[0]!, 0, 1_000_000));
			}
		},
		versions: (words, at) => lowerVersions(words, at, cx),
		compression: (words, at) => {
			if (!cx.count(at, words, 1, 1, 'compression off')) return;
			if (cx.boolean(words[0]!) === true) {
				const message = 'Asking upstreams for compressed answers is not part of this build yet.';
				cx.problem('error', 'directive/unavailable', words[0]!.span, message);
			}
		},
		network_proxy: (words, at) => {
			if (!cx.count(at, words, 1, 2, 'network_proxy none') || words[0]!.text === 'none') return;
			const message = 'Reaching upstreams through a proxy is not part of this build yet.';
			cx.problem('error', 'directive/unavailable', words[0]!.span, message);
		},
	};
	cx.subdirectives(line.block, refuseByName(known, UNAVAILABLE_TRANSPORT, cx), 'transport http');
}

function lowerVersions(words: readonly Word[], line: Line, cx: LowerContext): void {
	if (!cx.count(line, words, 1, 4, 'versions 1.1')) return;
	let plain = false;
	for (const word of words) {
		if (word.text === '1.1') plain = true;
		// Without TLS there is no negotiation of HTTP/2, so that `1.1 2` means 1.1.
		else if (word.text === '2') continue;
		else if (word.text === 'h2c' || word.text === '3') {
			const message = `HTTP version \`${word.text}\` to upstreams is not part of this build yet.`;
			cx.problem('error', 'directive/unavailable', word.span, message);
			return;
		} else {
			cx.oneOf(word, ['1.1', '2', 'h2c', '3'], 'version of HTTP');
			return;
		}
	}
	if (!plain) {
		const message = 'HTTP/2 to upstreams is not part of this build yet.';
		cx.problem('error', 'directive/unavailable', words[0]!.span, message, { hint: 'Write `versions 1.1`.' });
	}
}

function oneDuration(words: readonly Word[], line: Line, cx: LowerContext): number | undefined {
	if (!cx.count(line, words, 1, 1, `${line.words[0]!.text} <duration>`)) return undefined;
	const value = cx.duration(words[0]!);
	if (value === undefined) return undefined;
	// Timers count whole milliseconds in 31 bits.
	if (value >= 0 && value <= 2_147_483_647) return value;
	cx.problem('error', 'value/out-of-range', words[0]!.span, `\`${words[0]!.text}\` is out of range.`, {
		hint: 'Write a duration from 0 to 24d.',
	});
	return undefined;
}

function assign<K extends keyof UpstreamDraft>(
	draft: UpstreamDraft,
	key: K,
	value: UpstreamDraft[K] | undefined,
): void {
	if (value !== undefined) draft[key] = value;
}
