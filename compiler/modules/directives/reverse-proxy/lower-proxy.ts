/** Lowers `reverse_proxy` and directives that are based on it. */

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
	finishPool,
	lowerAddresses,
	poolSubdirectives,
	UPSTREAM_SOURCES,
	type UpstreamDraft,
} from './lower-upstream.ts';
import type { ProxyStep } from './proxy-handler.ts';
import type { UpstreamSettings } from './upstream-pool.ts';

const NAMED_POOL_PREFIX = 'upstream://';

/** Options for a directive that is lowered like `reverse_proxy`. */
export interface ProxyDirectiveOptions {
	readonly directiveName: string;
	readonly usage: string;
	/** Returns the directive's own sub-directives for the step. They take precedence over sub-directives of `reverse_proxy`. */
	readonly ownSubdirectives?: (
		fields: ProxyFields,
		poolDraft: UpstreamDraft,
	) => { readonly [name: string]: SubdirectiveHandler };
	/** Sub-directives of `reverse_proxy` that the directive does not have. */
	readonly excludedSubdirectives?: ReadonlySet<string>;
	/** False if the directive has no rules about responses, such as `handle_response`. */
	readonly hasResponseRules?: false;
	/** Returns the directive's own sub-directives for the pool. They are rejected if the line uses a named pool. */
	readonly ownPoolSubdirectives?: (poolDraft: UpstreamDraft) => { readonly [name: string]: SubdirectiveHandler };
	/** Called after all lines of the block have been lowered. `isNamedPool` is true if the directive uses a named pool. */
	readonly finish?: (fields: ProxyFields, poolDraft: UpstreamDraft, isNamedPool: boolean) => void;
}

/** Lowers the line of a directive that is based on `reverse_proxy` to a proxy step. */
export function lowerProxy(
	{ line, name, args }: DirectiveLine,
	options: ProxyDirectiveOptions,
	cx: LowerContext,
): Step {
	const poolDraft: UpstreamDraft = { to: [] };
	const fields: ProxyFields = {};
	const poolName = lowerPoolName(args, cx);
	if (poolName === undefined) lowerAddresses(args, poolDraft, cx);
	const poolHandlers = { ...poolSubdirectives(poolDraft, cx), ...options.ownPoolSubdirectives?.(poolDraft) };
	const usablePoolHandlers: { [name: string]: SubdirectiveHandler } =
		poolName === undefined ? poolHandlers : refusePoolSubdirectives(poolName, poolHandlers, cx);
	const responseRules = new ResponseRulesDraft(line.block?.lines ?? [], cx);
	const commonHandlers: { [name: string]: SubdirectiveHandler } = {
		...usablePoolHandlers,
		...proxySubdirectives(fields, cx),
	};
	for (const name of options.excludedSubdirectives ?? []) delete commonHandlers[name];
	const handlers = { ...commonHandlers, ...options.ownSubdirectives?.(fields, poolDraft) };
	if (options.hasResponseRules !== false) {
		Object.defineProperties(handlers, Object.getOwnPropertyDescriptors(responseRules.subdirectives()));
	}
	cx.subdirectives(line.block, handlers, options.directiveName, { foreignWords: FOREIGN_PROXY_WORDS });
	const rules = responseRules.sortedRules();
	if (rules.length > 0) fields.responses = rules;
	options.finish?.(fields, poolDraft, poolName !== undefined);
	if (poolName !== undefined) return cx.origin<ProxyStep>({ handler: 'proxy', pool: poolName, ...fields }, line.span);
	const hasAddress =
		args.length > 0 || line.block?.lines.some(({ words }) => UPSTREAM_SOURCES.has(words[0]!.text)) === true;
	if (!hasAddress) {
		const isConfigfile = cx.dialect === 'configfile';
		const message = `\`${options.directiveName}\` has no upstream${isConfigfile ? '' : ': every request gets status 503'}.`;
		const hint = `Usage: ${options.usage}`;
		cx.problem(isConfigfile ? 'error' : 'warning', 'arguments/too-few', name.span, message, { hint });
		if (!isConfigfile)
			return cx.origin({ handler: 'fail', status: 503, message: 'No upstream is available.' }, line.span);
	}
	finishPool(poolDraft, args[0]?.span ?? line.span, cx);
	dropDisabledHealthChecks(poolDraft);
	const upstreams = cx.origin(poolDraft as UpstreamDraft & UpstreamSettings, args[0]?.span ?? line.span);
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

/**
 * Returns the name in the argument `upstream://name`; undefined if no argument names a pool. Reports unknown names, and further
 * arguments besides the name.
 */
function lowerPoolName(args: readonly Word[], cx: LowerContext): string | undefined {
	if (cx.dialect === 'compatfile') return undefined;
	const word = args.find(({ text }) => text.startsWith(NAMED_POOL_PREFIX));
	if (!word) return undefined;
	const name = word.text.slice(NAMED_POOL_PREFIX.length);
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
		const nearestName = cx.nearestUpstream(name);
		cx.problem('error', 'upstream/unknown', word.span, `There is no upstream named \`${name}\`.`, {
			...suggestName({ text: name, span: word.span }, nearestName),
			hint: `Define it: upstream ${name === '' ? '<name>' : name} { to <address>… }`,
		});
	}
	return name;
}

/**
 * Returns handlers that reject the sub-directives in `poolHandlers`. A named pool is configured only where it is defined:
 * settings in one of the directives that use it would change the pool for all of them.
 */
function refusePoolSubdirectives(
	poolName: string,
	poolHandlers: { readonly [name: string]: SubdirectiveHandler },
	cx: LowerContext,
) {
	const refusingHandlers: { [name: string]: SubdirectiveHandler } = {};
	for (const subdirective of Object.keys(poolHandlers)) {
		refusingHandlers[subdirective] = (_args, line) => {
			const word = line.words[0]!;
			const message = `\`${word.text}\` belongs to the pool and cannot be combined with \`${NAMED_POOL_PREFIX}${poolName}\`.`;
			cx.problem('error', 'upstream/setting-of-named', word.span, message, {
				hint: `Write it in the block \`upstream ${poolName}\`.`,
			});
		};
	}
	return refusingHandlers;
}

function proxySubdirectives(fields: ProxyFields, cx: LowerContext): { [name: string]: SubdirectiveHandler } {
	const setField = <K extends keyof ProxyFields>(key: K, value: ProxyFields[K] | undefined) => {
		if (value !== undefined) fields[key] = value;
	};
	const requireSingleWord = (args: readonly Word[], line: Line, usage: string): Word | undefined =>
		cx.noBlock(line) && cx.count(line, args, 1, 1, usage) ? args[0] : undefined;
	const handlers: { [name: string]: SubdirectiveHandler } = {
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
			// Caddy allows `?` in `header` but not in `header_down`. Edits of kind `request` do not allow it, either.
			const editKind = cx.dialect === 'compatfile' ? 'request' : 'response';
			fields.header_down = lowerHeaderEdit(args, fields.header_down, editKind, cx);
		},
		method: (args, line) => {
			const word = requireSingleWord(args, line, 'method <method>');
			if (word) fields.method = word.text.includes('{') ? cx.template(word) : word.text.toUpperCase();
		},
		rewrite: (args, line) => {
			const word = requireSingleWord(args, line, 'rewrite <target>');
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
		request_buffers: (args, line) => setField('request_buffers', lowerBufferSize(args, line, cx)),
		response_buffers: (args, line) => setField('response_buffers', lowerBufferSize(args, line, cx)),
		stream_buffer_size: (args, line) => {
			if (lowerBufferSize(args, line, cx) === undefined) return;
			warnNoEffect(line, 'streams are passed on immediately, without copying into a buffer', cx);
		},
		stream_timeout: (args, line) => setField('stream_timeout', parseSingleDuration(args, line, cx)),
		stream_close_delay: (args, line) => setField('stream_close_delay', parseSingleDuration(args, line, cx)),
		verbose_logs: (args, line) => {
			if (cx.noBlock(line) && cx.count(line, args, 0, 0, 'verbose_logs')) fields.verbose_logs = true;
		},
		flush_interval: (args, line) => {
			const word = requireSingleWord(args, line, 'flush_interval <duration>');
			// The value is checked but not used, because bytes are always passed on immediately, whatever the interval.
			if (word && !/^-?\d+$/.test(word.text)) cx.duration(word);
		},
	};
	if (cx.dialect === 'configfile') {
		handlers.forwarded = (args, line) => {
			const word = requireSingleWord(args, line, 'forwarded on');
			const value = word && cx.boolean(word);
			if (value !== undefined) fields.forwarded = value;
		};
	}
	return handlers;
}

/** Parses the size of a buffer, such as `64KiB`, as bytes; −1 for `unlimited`. */
function lowerBufferSize(args: readonly Word[], line: Line, cx: LowerContext): number | undefined {
	const word = parseSingleWord(args, line, cx, 'size');
	if (!word) return undefined;
	return word.text === 'unlimited' ? -1 : cx.size(word);
}
