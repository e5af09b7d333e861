/** Lowers `reverse_proxy`, and directives that are built on one. */

import { suggestName } from '../../../diagnostics/suggest.ts';
import type { Step } from '../../../document/document.ts';
import { parseIpRange } from '../../../exchange/ip-ranges.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { DirectiveLine } from '../../contract/directive.ts';
import { FOREIGN_PROXY_WORDS } from '../../contract/foreign-words.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { type HeaderEdits, lowerHeaderEdit } from '../../words/header-edits.ts';
import { parseSingleDuration, parseSingleWord, warnNoEffect } from '../../words/single-value.ts';
import { type ResponseRule, ResponseRulesDraft } from '../responses/response-rules.ts';
import { dropDisabledHealthChecks } from './lower-health.ts';
import {
	lowerAddresses,
	poolSubdirectives,
	settlePool,
	UPSTREAM_SOURCES,
	type UpstreamDraft,
} from './lower-upstream.ts';
import type { ProxyStep } from './proxy-handler.ts';
import type { UpstreamSettings } from './upstream-pool.ts';

const NAMED = 'upstream://';

/** A directive that is lowered like `reverse_proxy`. */
export interface ProxyDirectiveOptions {
	/** The directive's name. */
	readonly of: string;
	readonly usage: string;
	/** The directive's own sub-directives for the step, which take precedence over those of `reverse_proxy`. */
	readonly own?: (fields: ProxyFields, pool: UpstreamDraft) => { readonly [name: string]: SubdirectiveHandler };
	/** Sub-directives of `reverse_proxy` that the directive does not have. */
	readonly without?: ReadonlySet<string>;
	/** False if the directive has no rules about responses, such as `handle_response`. */
	readonly responses?: false;
	/** The directive's own sub-directives for the pool; they are rejected if the line uses a named pool. */
	readonly ofPool?: (pool: UpstreamDraft) => { readonly [name: string]: SubdirectiveHandler };
	/** Called after all lines have been lowered. `named` is true if the line uses a named pool. */
	readonly settle?: (fields: ProxyFields, pool: UpstreamDraft, named: boolean) => void;
}

/** Lowers the line of such a directive to a proxy step. */
export function lowerProxy({ line, name, args }: DirectiveLine, words: ProxyDirectiveOptions, cx: LowerContext): Step {
	const draft: UpstreamDraft = { to: [] };
	const fields: ProxyFields = {};
	const named = lowerName(args, cx);
	if (named === undefined) lowerAddresses(args, draft, cx);
	const pool = { ...poolSubdirectives(draft, cx), ...words.ofPool?.(draft) };
	const known: { [name: string]: SubdirectiveHandler } = named === undefined ? pool : refusedBeside(named, pool, cx);
	const responses = new ResponseRulesDraft(line.block?.lines ?? [], cx);
	const common: { [name: string]: SubdirectiveHandler } = { ...known, ...proxySubdirectives(fields, cx) };
	for (const name of words.without ?? []) delete common[name];
	const every = { ...common, ...words.own?.(fields, draft) };
	if (words.responses !== false) {
		Object.defineProperties(every, Object.getOwnPropertyDescriptors(responses.subdirectives()));
	}
	cx.subdirectives(line.block, every, words.of, { foreignWords: FOREIGN_PROXY_WORDS });
	const rules = responses.rules();
	if (rules.length > 0) fields.responses = rules;
	words.settle?.(fields, draft, named !== undefined);
	if (named !== undefined) return cx.origin<ProxyStep>({ handler: 'proxy', pool: named, ...fields }, line.span);
	const hasAddress =
		args.length > 0 || line.block?.lines.some(({ words }) => UPSTREAM_SOURCES.has(words[0]!.text)) === true;
	if (!hasAddress) {
		const configfile = cx.dialect === 'configfile';
		const message = `\`${words.of}\` has no upstream${configfile ? '' : ': every request gets status 503'}.`;
		const hint = `Usage: ${words.usage}`;
		cx.problem(configfile ? 'error' : 'warning', 'arguments/too-few', name.span, message, { hint });
		if (!configfile)
			return cx.origin({ handler: 'fail', status: 503, message: 'No upstream is available.' }, line.span);
	}
	settlePool(draft, args[0]?.span ?? line.span, cx);
	dropDisabledHealthChecks(draft);
	const upstreams = cx.origin(draft as UpstreamDraft & UpstreamSettings, args[0]?.span ?? line.span);
	return cx.origin<ProxyStep>({ handler: 'proxy', upstreams, ...fields }, line.span);
}

/** The settings of `reverse_proxy` apart from its pool. */
export interface ProxyFields {
	header_up?: HeaderEdits;
	header_down?: HeaderEdits;
	method?: string;
	rewrite?: string;
	trusted_proxies?: string[];
	responses?: readonly ResponseRule[];
	forwarded?: boolean;
	request_buffers?: number;
	response_buffers?: number;
	stream_timeout?: number;
	stream_close_delay?: number;
	verbose_logs?: boolean;
}

/** Returns the name in `upstream://name`; undefined if there is none, or if it is not the only argument. */
function lowerName(args: readonly Word[], cx: LowerContext): string | undefined {
	if (cx.dialect === 'compatfile') return undefined;
	const word = args.find(({ text }) => text.startsWith(NAMED));
	if (!word) return undefined;
	const name = word.text.slice(NAMED.length);
	if (args.length > 1) {
		cx.problem(
			'error',
			'upstream/named-and-others',
			word.span,
			'A named upstream is a complete pool and cannot be combined with other addresses.',
			{
				hint: 'Add the other addresses to its block.',
			},
		);
	}
	if (!cx.upstreamExists(name)) {
		const nearest = cx.nearestUpstream(name);
		cx.problem('error', 'upstream/unknown', word.span, `There is no upstream named \`${name}\`.`, {
			...suggestName({ text: name, span: word.span }, nearest),
			hint: `Define it: upstream ${name === '' ? '<name>' : name} { to <address>… }`,
		});
	}
	return name;
}

/**
 * Returns sub-directives that reject settings of a pool. A named pool is configured where it is defined; settings here would
 * change it for every other user.
 */
function refusedBeside(name: string, pool: { readonly [name: string]: SubdirectiveHandler }, cx: LowerContext) {
	const refused: { [name: string]: SubdirectiveHandler } = {};
	for (const subdirective of Object.keys(pool)) {
		refused[subdirective] = (_args, line) => {
			const word = line.words[0]!;
			const message = `\`${word.text}\` belongs to the pool and cannot be combined with \`${NAMED}${name}\`.`;
			cx.problem('error', 'upstream/setting-of-named', word.span, message, {
				hint: `Write it in the block \`upstream ${name}\`.`,
			});
		};
	}
	return refused;
}

function proxySubdirectives(fields: ProxyFields, cx: LowerContext): { [name: string]: SubdirectiveHandler } {
	const assign = <K extends keyof ProxyFields>(key: K, value: ProxyFields[K] | undefined) => {
		if (value !== undefined) fields[key] = value;
	};
	const once = (args: readonly Word[], line: Line, usage: string): Word | undefined =>
		cx.noBlock(line) && cx.count(line, args, 1, 1, usage) ? args[0] : undefined;
	const known: { [name: string]: SubdirectiveHandler } = {
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
			// The compatible server allows `?` only in `header`.
			const of = cx.dialect === 'compatfile' ? 'request' : 'response';
			fields.header_down = lowerHeaderEdit(args, fields.header_down, of, cx);
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
		request_buffers: (args, line) => assign('request_buffers', bufferSize(args, line, cx)),
		response_buffers: (args, line) => assign('response_buffers', bufferSize(args, line, cx)),
		stream_buffer_size: (args, line) => {
			if (bufferSize(args, line, cx) === undefined) return;
			warnNoEffect(line, 'streams are passed on immediately, without copying into a buffer', cx);
		},
		stream_timeout: (args, line) => assign('stream_timeout', parseSingleDuration(args, line, cx)),
		stream_close_delay: (args, line) => assign('stream_close_delay', parseSingleDuration(args, line, cx)),
		verbose_logs: (args, line) => {
			if (cx.noBlock(line) && cx.count(line, args, 0, 0, 'verbose_logs')) fields.verbose_logs = true;
		},
		flush_interval: (args, line) => {
			const word = once(args, line, 'flush_interval <duration>');
			// The value is only checked. Bytes are always passed on immediately, which satisfies every interval.
			if (word && !/^-?\d+$/.test(word.text)) cx.duration(word);
		},
	};
	if (cx.dialect === 'configfile') {
		known.forwarded = (args, line) => {
			const word = once(args, line, 'forwarded on');
			const value = word && cx.boolean(word);
			if (value !== undefined) fields.forwarded = value;
		};
	}
	return known;
}

/** Parses `64KiB`, or `unlimited`, which is −1. */
function bufferSize(args: readonly Word[], line: Line, cx: LowerContext): number | undefined {
	const word = parseSingleWord(args, line, cx, 'size');
	if (!word) return undefined;
	return word.text === 'unlimited' ? -1 : cx.size(word);
}
