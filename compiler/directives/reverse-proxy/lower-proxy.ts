/** Lowering of a line of `reverse_proxy`, and of directives that are one with something around it. */
import { parseIpRange } from '../../exchange/ip-ranges.ts';
import type { UpstreamSettings } from '../../exchange/leases.ts';
import type { LowerContext, Subdirective } from '../../lower/lower-context.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import type { DirectiveLine } from '../directive.ts';
import { type HeaderEdits, lowerHeaderEdit } from '../header-edits.ts';
import { type ResponseRule, ResponseRulesDraft } from '../responses/response-rules.ts';
import { settleHealth } from './lower-health.ts';
import {
	lowerAddresses,
	poolSubdirectives,
	refuseByName,
	SOURCES,
	UNAVAILABLE_OF_POOLS,
	type UpstreamDraft,
} from './lower-upstream.ts';
import type { ProxyStep } from './proxy-handler.ts';
import { settleSchemes } from './transports/lower-transport.ts';

const NAMED = 'upstream://';

/** Sub-directives of later builds. */
const UNAVAILABLE: readonly string[] = [
	...['request_buffers', 'response_buffers', 'stream_buffer_size', 'stream_timeout', 'stream_close_delay'],
	'verbose_logs',
];

/** A directive that is a `reverse_proxy`, whole or in its middle. */
export interface ProxyWords {
	/** The word of the directive. */
	readonly of: string;
	readonly usage: string;
	/** Its own sub-directives about the step, which stand before those of `reverse_proxy`. */
	readonly own?: (fields: ProxyFields, pool: UpstreamDraft) => { readonly [name: string]: Subdirective };
	/** Its own sub-directives that fill the pool: they are refused beside a named one. */
	readonly ofPool?: (pool: UpstreamDraft) => { readonly [name: string]: Subdirective };
	/** Called when all lines have been read. `named` is true for a pool that is defined elsewhere. */
	readonly settle?: (fields: ProxyFields, pool: UpstreamDraft, named: boolean) => void;
}

/** Lowers a line of such a directive to the step of the proxy. */
export function lowerProxy({ line, name, args }: DirectiveLine, words: ProxyWords, cx: LowerContext): ProxyStep {
	const draft: UpstreamDraft = { to: [] };
	const fields: ProxyFields = {};
	const named = lowerName(args, cx);
	if (named === undefined) lowerAddresses(args, draft, cx);
	const pool = { ...poolSubdirectives(draft, cx), ...words.ofPool?.(draft) };
	const known: { [name: string]: Subdirective } = named === undefined ? pool : refusedBeside(named, pool, cx);
	const refused = [...UNAVAILABLE, ...UNAVAILABLE_OF_POOLS];
	const responses = new ResponseRulesDraft(line.block?.lines ?? [], cx);
	const own = { ...known, ...proxySubdirectives(fields, cx), ...words.own?.(fields, draft) };
	const every = refuseByName(own, refused, cx);
	Object.defineProperties(every, Object.getOwnPropertyDescriptors(responses.subdirectives()));
	cx.subdirectives(line.block, every, words.of);
	const rules = responses.rules();
	if (rules.length > 0) fields.responses = rules;
	words.settle?.(fields, draft, named !== undefined);
	if (named !== undefined) return cx.origin<ProxyStep>({ handler: 'proxy', pool: named, ...fields }, line.span);
	const hasAddress = args.length > 0 || line.block?.lines.some(({ words }) => SOURCES.has(words[0]!.text)) === true;
	if (!hasAddress && cx.dialect === 'configfile') {
		cx.problem('error', 'arguments/too-few', name.span, `\`${words.of}\` has no upstream.`, {
			hint: `Usage: ${words.usage}`,
		});
	}
	settleSchemes(draft, args[0]?.span ?? line.span, cx);
	settleHealth(draft);
	const upstreams = cx.origin(draft as UpstreamDraft & UpstreamSettings, args[0]?.span ?? line.span);
	return cx.origin<ProxyStep>({ handler: 'proxy', upstreams, ...fields }, line.span);
}

/** What `reverse_proxy` itself has beside its pool. */
export interface ProxyFields {
	header_up?: HeaderEdits;
	header_down?: HeaderEdits;
	method?: string;
	rewrite?: string;
	trusted_proxies?: string[];
	responses?: readonly ResponseRule[];
}

/** The name of `upstream://name`; undefined when there is none, or it is not alone. */
function lowerName(args: readonly Word[], cx: LowerContext): string | undefined {
	if (cx.dialect === 'compatfile') return undefined;
	const word = args.find(({ text }) => text.startsWith(NAMED));
	if (!word) return undefined;
	const name = word.text.slice(NAMED.length);
	if (args.length > 1) {
		cx.problem('error', 'upstream/named-and-others', word.span, 'A named upstream stands alone: it is a whole pool.', {
			hint: 'Add the other addresses to its block.',
		});
	}
	if (!cx.upstreamExists(name)) {
		const nearest = cx.nearestUpstream(name);
		cx.problem('error', 'upstream/unknown', word.span, `There is no upstream named \`${name}\`.`, {
			label: nearest === undefined ? undefined : `did you mean \`${nearest}\`?`,
			hint: `Define it: upstream ${name === '' ? '<name>' : name} { to <address>… }`,
		});
	}
	return name;
}

/** Settings of a named pool are made where it is defined: here they would change it for every other user. */
function refusedBeside(name: string, pool: { readonly [name: string]: Subdirective }, cx: LowerContext) {
	const refused: { [name: string]: Subdirective } = {};
	for (const subdirective of Object.keys(pool)) {
		refused[subdirective] = (_args, line) => {
			const word = line.words[0]!;
			const message = `\`${word.text}\` belongs to the pool: it cannot stand beside \`${NAMED}${name}\`.`;
			cx.problem('error', 'upstream/setting-of-named', word.span, message, {
				hint: `Write it in the block \`upstream ${name}\`.`,
			});
		};
	}
	return refused;
}

function proxySubdirectives(fields: ProxyFields, cx: LowerContext): { [name: string]: Subdirective } {
	const once = (args: readonly Word[], line: Line, usage: string): Word | undefined =>
		cx.noBlock(line) && cx.count(line, args, 1, 1, usage) ? args[0] : undefined;
	const known: { [name: string]: Subdirective } = {
		header_up: (args, line) => {
			if (!cx.noBlock(line) || !cx.count(line, args, 1, 3, 'header_up [+|-]<field> [<value>|<regexp> [<replacement>]]'))
				return;
			fields.header_up = lowerHeaderEdit(args, fields.header_up, 'request', cx);
		},
		header_down: (args, line) => {
			if (
				!cx.noBlock(line) ||
				!cx.count(line, args, 1, 3, 'header_down [+|-]<field> [<value>|<regexp> [<replacement>]]')
			)
				return;
			fields.header_down = lowerHeaderEdit(args, fields.header_down, 'response', cx);
		},
		method: (args, line) => {
			const word = once(args, line, 'method <method>');
			if (word) fields.method = word.text.includes('{') ? cx.template(word) : word.text.toUpperCase();
		},
		rewrite: (args, line) => {
			const word = once(args, line, 'rewrite <target>');
			if (word) fields.rewrite = cx.template(word);
		},
		trusted_proxies: (args, line) => {
			if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'trusted_proxies <range>…')) return;
			for (const word of args) {
				if (word.text === 'private_ranges' || parseIpRange(word.text)) {
					fields.trusted_proxies = [...(fields.trusted_proxies ?? []), word.text];
				} else {
					const message = `\`${word.text}\` is not an IP address or range.`;
					cx.problem('error', 'value/not-a-range', word.span, message, {
						hint: 'Write an address, a range such as 10.0.0.0/8, or `private_ranges`.',
					});
				}
			}
		},
		flush_interval: (args, line) => {
			const word = once(args, line, 'flush_interval <duration>');
			// Bytes are always passed on at once, which every interval allows.
			if (word && !/^-?\d+$/.test(word.text)) cx.duration(word);
		},
	};
	return known;
}
