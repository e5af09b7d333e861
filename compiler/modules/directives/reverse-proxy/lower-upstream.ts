/** Lowers the settings of a pool of upstreams, in `reverse_proxy` and in `upstream <name> { … }`. */

import type { SourceSpan } from '../../../source/source.ts';
import type { Line, NamedBlock, Word } from '../../../syntax/ast.ts';
import { FOREIGN_PROXY_WORDS } from '../../contract/foreign-words.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import type { BalanceSettings } from '../../providers/balancers/balancer.ts';
import { balancers } from '../../providers/balancers/index.ts';
import { dynamicSubdirective } from './lower-dynamic.ts';
import { dropDisabledHealthChecks, type HealthDraft, healthSubdirectives } from './lower-health.ts';
import { type RetryDraft, retrySubdirectives } from './lower-retries.ts';
import { applyAddressSchemes, firstScheme, lowerTransport } from './lower-transport.ts';
import { DEFAULT_SHED_SETTINGS } from './shed-settings.ts';
import type { TransportSettings } from './transports/transport-settings.ts';
import { parseUpstream } from './upstream-address.ts';
import type { DynamicSource } from './upstream-pool.ts';

/** The settings of a pool that is being lowered. Its lines set the fields. */
export interface UpstreamDraft extends HealthDraft, RetryDraft {
	to: string[];
	backup?: string[];
	balance?: { readonly policy: string; readonly [setting: string]: unknown };
	connect_timeout?: number;
	response_header_timeout?: number;
	max_response_header?: number;
	keepalive?: number;
	keepalive_idle_conns?: number;
	transport?: TransportSettings;
	dynamic?: DynamicSource;
}

/**
 * The weights of addresses, by draft, until all lines of the pool have been lowered. They are stored outside the draft because the
 * document has no field for them.
 */
const WEIGHTS_BY_DRAFT: WeakMap<UpstreamDraft, PoolWeights> = new WeakMap();

interface PoolWeights {
	/** The weights of addresses in `to`, by index. */
	readonly weightByIndex: Map<number, number>;
	/** Where the first weight is written in the configuration. */
	readonly firstWeightSpan: SourceSpan;
}

/** Names of the sub-directives that give a pool its addresses. */
export const UPSTREAM_SOURCES: ReadonlySet<string> = new Set(['to', 'dynamic']);

/** Lowers `upstream <name> { … }` to the settings of `upstreams.<name>`. */
export function lowerNamedUpstream(block: NamedBlock, cx: LowerContext): UpstreamDraft {
	const draft: UpstreamDraft = { to: [] };
	const handlers = poolSubdirectives(draft, cx, true);
	const firstLine = block.lines[0];
	const lastLine = block.lines[block.lines.length - 1];
	if (firstLine && lastLine) {
		cx.subdirectives({ lines: block.lines, open: firstLine.span, close: lastLine.span }, handlers, 'upstream', {
			foreignWords: FOREIGN_PROXY_WORDS,
		});
	}
	const hasAddress =
		draft.dynamic !== undefined || block.lines.some(({ words }) => UPSTREAM_SOURCES.has(words[0]!.text));
	if (draft.to.length === 0 && !hasAddress) {
		cx.problem('error', 'upstream/empty', block.name.span, `The upstream \`${block.name.text}\` has no address.`, {
			hint: 'Add a line such as `to 127.0.0.1:8080`.',
		});
		// The dummy address prevents another report of the same mistake where the pool is used.
		draft.to.push('127.0.0.1:8080');
	}
	finishPool(draft, block.name.span, cx);
	dropDisabledHealthChecks(draft);
	return draft;
}

/** Applies the schemes of addresses, weights and `backup` to a draft. Called when all lines of the pool have been lowered. */
export function finishPool(draft: UpstreamDraft, span: SourceSpan, cx: LowerContext): void {
	const { backup } = draft;
	const isBackupByIndex = draft.to.map(text => backup?.includes(text) === true);
	applyAddressSchemes(draft, span, cx);
	if (backup) draft.backup = draft.to.filter((_, index) => isBackupByIndex[index]);
	applyWeights(draft, isBackupByIndex, cx);
	warnOfUnreachableLimit(draft, span, cx);
	if (backup && !canBeUnavailable(draft)) {
		cx.problem(
			'warning',
			'upstream/backup-never-used',
			span,
			'The backups are never used: no upstream is ever taken to be unavailable.',
			{
				hint: 'Add `lb_retries 1`, so that a request that fails goes to another upstream, or health checks.',
			},
		);
	}
}

/** Warns if `shed` can never refuse a request, because `unhealthy_request_count` makes upstreams unavailable earlier. */
function warnOfUnreachableLimit(draft: UpstreamDraft, span: SourceSpan, cx: LowerContext): void {
	const { shed, unhealthy_request_count: maxRequests } = draft;
	const minLimit = shed?.min ?? DEFAULT_SHED_SETTINGS.min;
	if (shed === undefined || maxRequests === undefined || maxRequests > minLimit) return;
	const message = `\`shed\` has no effect: upstreams are full at ${maxRequests} requests, and its limit is never below ${minLimit}.`;
	cx.problem('warning', 'shed/never-reached', span, message, {
		hint: 'Remove `unhealthy_request_count`, or lower `min`.',
	});
}

function canBeUnavailable(draft: UpstreamDraft): boolean {
	const { retries, retry_duration, health, fail_duration, unhealthy_request_count, circuit, shed } = draft;
	return [retries, retry_duration, health, fail_duration, unhealthy_request_count, circuit, shed].some(
		setting => setting !== undefined,
	);
}

function applyWeights(draft: UpstreamDraft, isBackupByIndex: readonly boolean[], cx: LowerContext): void {
	const weights = WEIGHTS_BY_DRAFT.get(draft);
	if (!weights) return;
	if (draft.balance) {
		cx.problem(
			'error',
			'balancing/weights-and-policy',
			weights.firstWeightSpan,
			`Weights beside addresses and \`lb_policy ${draft.balance.policy}\` cannot be combined.`,
			{
				hint: 'Remove one of them.',
			},
		);
		return;
	}
	const primaryWeights = draft.to.flatMap((_, index) =>
		isBackupByIndex[index] ? [] : [weights.weightByIndex.get(index) ?? 1],
	);
	draft.balance = { policy: 'weighted_round_robin', weights: primaryWeights };
}

/** Lowers `weight=<n>`. It applies to the addresses of the preceding word, which begin at `firstIndex` in `draft.to`. */
function lowerWeight(word: Word, weightText: string, firstIndex: number, draft: UpstreamDraft, cx: LowerContext): void {
	const weight = /^\d{1,6}$/.test(weightText) ? Number(weightText) : undefined;
	if (weight === undefined || weight === 0) {
		cx.problem('error', 'balancing/invalid-weight', word.span, `\`${weightText}\` is not a weight.`, {
			hint: 'Write a number from 1 to 999999.',
		});
		return;
	}
	if (firstIndex === draft.to.length) {
		cx.problem('error', 'balancing/invalid-weight', word.span, `\`weight=${weightText}\` has no address before it.`, {
			hint: 'Write it after the address: `10.0.0.1:8080 weight=3`.',
		});
		return;
	}
	const weights = WEIGHTS_BY_DRAFT.get(draft) ?? { weightByIndex: new Map(), firstWeightSpan: word.span };
	for (let index = firstIndex; index < draft.to.length; index++) weights.weightByIndex.set(index, weight);
	WEIGHTS_BY_DRAFT.set(draft, weights);
}

/** Lowers addresses into the draft. Their schemes are removed later, by `applyAddressSchemes`. */
export function lowerAddresses(words: readonly Word[], draft: UpstreamDraft, cx: LowerContext): void {
	/** Index in `draft.to` of the first address that the last lowered word added. */
	let lastWordStart = draft.to.length;
	for (const word of words) {
		const weightMatch = cx.dialect === 'configfile' ? /^weight=(.*)$/.exec(word.text) : null;
		if (weightMatch) {
			lowerWeight(word, weightMatch[1]!, lastWordStart, draft, cx);
			continue;
		}
		lastWordStart = draft.to.length;
		const addressText = dropPath(cx.template(word), word, cx);
		const parsedUpstream = parseUpstream(addressText);
		if (cx.dialect === 'configfile' && /^\d{1,5}$/.test(addressText)) {
			cx.problem('error', 'upstream/invalid-address', word.span, `\`${addressText}\` is a number, not a host.`, {
				hint: `Write \`:${addressText}\` for that port on this machine, or \`host:${addressText}\`.`,
			});
		} else if (parsedUpstream.kind === 'static') {
			const earlierScheme = firstScheme(draft);
			if (earlierScheme !== '' && earlierScheme !== parsedUpstream.scheme) {
				const message = `for now, all proxy upstreams must use the same scheme (transport protocol); expecting '${earlierScheme}://' but got '${parsedUpstream.scheme}://'`;
				cx.problem('error', 'upstream/mixed-schemes', word.span, message);
			}
			const schemePrefix = parsedUpstream.scheme === '' ? '' : `${parsedUpstream.scheme}://`;
			draft.to.push(...parsedUpstream.addresses.map(({ dial }) => `${schemePrefix}${dial}`));
		} else if (parsedUpstream.kind === 'template') draft.to.push(...parsedUpstream.texts);
		else {
			const message =
				cx.dialect === 'compatfile'
					? `parsing upstream '${word.text}': ${parsedUpstream.message}`
					: `\`${word.text}\` cannot be an upstream: ${parsedUpstream.message}.`;
			cx.problem(
				'error',
				parsedUpstream.code,
				word.span,
				message,
				parsedUpstream.hint === undefined ? {} : { hint: parsedUpstream.hint },
			);
		}
	}
}

/**
 * Removes the path from an address without a scheme and warns that the path is ignored. Only a Compatfile may contain such a path.
 */
function dropPath(addressText: string, word: Word, cx: LowerContext): string {
	const [, address, path] = /^([A-Za-z0-9.[\]:-]+)(\/.*)$/.exec(addressText) ?? [];
	if (cx.dialect !== 'compatfile' || address === undefined || path === undefined) return addressText;
	if (isInvalidAddress(address) || !isInvalidAddress(addressText)) return addressText;
	cx.problem(
		'warning',
		'upstream/url-with-path',
		word.span,
		`\`${path}\` is ignored: an upstream address cannot have a path.`,
		{
			hint: 'Use `rewrite` to change the path.',
		},
	);
	return address;
}

function isInvalidAddress(address: string): boolean {
	return parseUpstream(address).kind === 'invalid';
}

/**
 * Returns the handlers of the sub-directives that configure a pool, which fill the draft. `isNamedPool` is true in the block of a
 * named upstream.
 */
export function poolSubdirectives(
	draft: UpstreamDraft,
	cx: LowerContext,
	isNamedPool = false,
): { [name: string]: SubdirectiveHandler } {
	let hasTransport = false;
	const handlers: { [name: string]: SubdirectiveHandler } = {
		to: (args, line) => {
			if (cx.noBlock(line) && cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'to <upstream>…')) {
				lowerAddresses(args, draft, cx);
			}
		},
		backup: (args, line) => {
			if (!cx.noBlock(line) || !cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'backup <upstream>…')) return;
			const earlierCount = draft.to.length;
			lowerAddresses(args, draft, cx);
			const addedAddresses = draft.to.slice(earlierCount);
			const templateAddress = addedAddresses.find(text => parseUpstream(text).kind !== 'static');
			if (templateAddress !== undefined) {
				cx.problem(
					'error',
					'upstream/backup-placeholder',
					args[0]!.span,
					`\`${templateAddress}\` cannot be a backup, because it is resolved for each request.`,
				);
			} else draft.backup = [...(draft.backup ?? []), ...addedAddresses];
		},
		dynamic: dynamicSubdirective(draft, cx),
		lb_policy: (args, line) => lowerPolicy(args, line, draft, cx),
		...retrySubdirectives(draft, cx, isNamedPool),
		...healthSubdirectives(draft, cx),
		transport: (args, line) => {
			if (hasTransport) {
				cx.problem('error', 'upstream/transport-twice', line.words[0]!.span, 'transport already specified');
				return;
			}
			hasTransport = true;
			lowerTransport(args, line, draft, cx);
		},
	};
	return handlers;
}

function lowerPolicy(args: readonly Word[], line: Line, draft: UpstreamDraft, cx: LowerContext): void {
	if (!cx.count(line, args, 1, Number.POSITIVE_INFINITY, 'lb_policy <policy> [<argument>…]')) return;
	if (draft.balance) {
		const message = 'load balancing selection policy already specified';
		cx.problem('error', 'balancing/policy-twice', line.words[0]!.span, message);
		return;
	}
	const balance = lowerBalance(args, line, cx);
	if (balance) draft.balance = balance;
}

/** Lowers the words of a policy. `line` may have a block with the policy's settings. Returns undefined after a fatal mistake. */
function lowerBalance(words: readonly Word[], line: Line, cx: LowerContext): BalanceSettings | undefined {
	const [policyWord, ...policyArgs] = words;
	if (!policyWord) return undefined;
	const policyIds = balancers.map(({ id }) => id);
	const policy = cx.oneOf(policyWord, policyIds, 'balancing policy');
	const balancer = balancers.find(({ id }) => id === policy);
	if (!balancer) return undefined;
	// Messages about wrong arguments count the words of the line, so the line gets only the words of this policy.
	const policyLine: Line = { ...line, words };
	const settings = balancer.lower(policyArgs, policyLine, cx, (fallbackWords, innerLine) =>
		lowerBalance(fallbackWords, { ...innerLine, words: fallbackWords }, cx),
	);
	return { policy: balancer.id, ...settings };
}
