/**
 * The settings that the directive `cache` and the global option `cache` have in common: lifetimes of responses, and when a stored
 * response may be used.
 */

import type { Schema } from '../../../document/schema-type.ts';
import type { Block, Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { isNeverStored } from './storable.ts';

/** The common cache settings, as fields of the document. Times are in milliseconds. */
export interface CacheRuleFields {
	/** Freshness lifetimes by status (`404`), class (`5xx`) or `default`. */
	readonly ttl?: { readonly [status: string]: number };
	readonly heuristic?: number;
	readonly stale_while_revalidate?: number;
	readonly stale_if_error?: number;
	/** Maximum size of a stored body in bytes. */
	readonly max_body?: number;
	/** Maximum milliseconds that a request waits for a coalesced fetch; 0 disables coalescing. */
	readonly collapse?: number;
	readonly client_control?: boolean;
	readonly status_header?: boolean;
}

/** Minimum size of a store in bytes: 1 MiB. */
const MIN_STORE_BYTES = 1_048_576;
/** Maximum size of a store in bytes: 64 GiB. */
const MAX_STORE_BYTES = 64 * 1024 ** 3;

/** Schema of the maximum size of a store in bytes. */
export const CACHE_SIZE_SCHEMA: Schema = { type: 'integer', minimum: MIN_STORE_BYTES, maximum: MAX_STORE_BYTES };

/** Lowers `ceiling SIZE`. */
export function lowerCeiling(fields: { [field: string]: unknown }, cx: LowerContext): SubdirectiveHandler {
	return (words, innerLine) => {
		cx.noBlock(innerLine);
		if (!cx.count(innerLine, words, 1, 1, 'ceiling <size>')) return;
		const sizeBytes = cx.size(words[0]!);
		if (sizeBytes === undefined) return;
		if (sizeBytes >= MIN_STORE_BYTES && sizeBytes <= MAX_STORE_BYTES) fields.ceiling = sizeBytes;
		else {
			cx.problem('error', 'cache/ceiling', words[0]!.span, `\`${words[0]!.text}\` is not a valid size of a store.`, {
				hint: 'Write a size from 1MiB to 64GiB.',
			});
		}
	};
}

/** Maximum of a configured time: 365 days. */
const MAX_TIME_MS = 31_536_000_000;

const timeSchema = (description: string): Schema => ({ type: 'number', minimum: 0, maximum: MAX_TIME_MS, description });

/** Schema of {@link CacheRuleFields}. */
export const CACHE_RULES_PROPERTIES: { readonly [name: string]: Schema } = {
	ttl: {
		type: 'object',
		description: 'Milliseconds for which responses without an explicit lifetime are fresh.',
		properties: { default: timeSchema('Successes and permanent redirects.') },
		patternProperties: { '^[2-5](\\d\\d|xx)$': timeSchema('Responses of this status, or of this class.') },
		additionalProperties: false,
	},
	heuristic: {
		type: 'number',
		minimum: 0,
		maximum: 1,
		description: 'Share of the time since `Last-Modified` for which a response is assumed to be fresh; 0 disables it.',
	},
	stale_while_revalidate: timeSchema(
		'Milliseconds for which a stale response is served while it is revalidated (RFC 5861).',
	),
	stale_if_error: timeSchema('Milliseconds for which a stale response is served if later handlers fail (RFC 5861).'),
	max_body: { type: 'integer', minimum: 0, description: 'Maximum bytes of a stored body.' },
	collapse: {
		type: 'number',
		minimum: 0,
		maximum: 3_600_000,
		description:
			'Milliseconds for which a request waits for an identical one in progress; 0 disables it, default 10000.',
	},
	client_control: {
		type: 'boolean',
		description: 'Whether `Cache-Control` of requests is obeyed; default true.',
	},
	status_header: {
		type: 'boolean',
		description: 'Adds `Cache-Status` (RFC 9211); default true.',
	},
};

/**
 * Lowers a block with the settings of {@link CacheRuleFields} into `fields`. `ownSubdirectives` handles the subdirectives that only
 * the caller's block has.
 */
export function lowerCacheRules(
	block: Block | undefined,
	fields: { [field: string]: unknown },
	cx: LowerContext,
	{
		directiveName: owner,
		ownSubdirectives,
	}: { readonly directiveName: string; readonly ownSubdirectives: { readonly [name: string]: SubdirectiveHandler } },
): void {
	const lowerTime = (word: Word, maxMs: number = MAX_TIME_MS): number | undefined => {
		const value = cx.duration(word);
		if (value === undefined || (value >= 0 && value <= maxMs)) return value;
		cx.problem('error', 'value/out-of-range', word.span, `\`${word.text}\` is out of range.`, {
			hint: maxMs === MAX_TIME_MS ? 'Write a time from 0 to 365d.' : 'Write a time from 0 to 1h.',
		});
		return undefined;
	};
	const setField = (field: string, value: unknown): void => {
		if (value !== undefined) fields[field] = value;
	};
	const flagHandler = (field: string): SubdirectiveHandler => {
		return (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 1, 1, `${field} on|off`)) setField(field, cx.boolean(words[0]!));
		};
	};
	const lowerTtl = (words: readonly Word[], innerLine: Line): void => {
		cx.noBlock(innerLine);
		if (!cx.count(innerLine, words, 1, Number.POSITIVE_INFINITY, 'ttl [<status>…] <duration>')) return;
		const lifetimeMs = lowerTime(words[words.length - 1]!);
		const lifetimes = { ...((fields.ttl as { [status: string]: number } | undefined) ?? {}) };
		const statuses = words.slice(0, -1);
		for (const { text, span } of statuses) {
			if (!/^[2-5](?:\d\d|xx)$/.test(text) || isNeverStored(Number(text))) {
				cx.problem('error', 'cache/status', span, `\`${text}\` is not a status whose responses can be stored.`, {
					hint: isNeverStored(Number(text))
						? 'Leave it out: such a response concerns only one request.'
						: 'Write a status such as `404`, or a class such as `5xx`.',
				});
			} else if (lifetimeMs !== undefined) lifetimes[text] = lifetimeMs;
		}
		if (statuses.length === 0 && lifetimeMs !== undefined) lifetimes.default = lifetimeMs;
		if (lifetimeMs !== undefined) fields.ttl = lifetimes;
	};
	cx.subdirectives(
		block,
		{
			ttl: lowerTtl,
			stale: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 2, 2, 'stale while_revalidate|if_error <duration>')) return;
				const staleKind = cx.oneOf(words[0]!, ['while_revalidate', 'if_error'], 'reason to serve what is stale');
				const value = lowerTime(words[1]!);
				if (staleKind !== undefined) setField(`stale_${staleKind}`, value);
			},
			heuristic: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 0, 1, 'heuristic [<share>]')) return;
				const shareText = words[0]?.text ?? '0.1';
				const heuristicFraction =
					shareText === 'off' ? 0 : /^(?:0|1|0?\.\d{1,6}|1\.0)$/.test(shareText) ? Number(shareText) : undefined;
				if (heuristicFraction !== undefined) fields.heuristic = heuristicFraction;
				else {
					cx.problem('error', 'cache/heuristic', words[0]!.span, `\`${shareText}\` is not a share.`, {
						hint: 'Write a number from 0 to 1, such as `0.1`, or `off`.',
					});
				}
			},
			max_body: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (cx.count(innerLine, words, 1, 1, 'max_body <size>')) setField('max_body', cx.size(words[0]!));
			},
			collapse: (words, innerLine) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, 1, 'collapse <duration>|off')) return;
				setField('collapse', words[0]!.text === 'off' ? 0 : lowerTime(words[0]!, 3_600_000));
			},
			client_control: flagHandler('client_control'),
			status_header: flagHandler('status_header'),
			...ownSubdirectives,
		},
		owner,
	);
}
