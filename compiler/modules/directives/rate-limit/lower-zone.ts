/** The zones of `rate_limit`: their lines and their schema. */
import type { Matcher } from '../../../document/document.ts';
import { MATCHER_SCHEMA } from '../../../document/references.ts';
import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { lowerRanges } from '../../words/range-words.ts';
import { type AnnouncedResponses, CLIENT_KEY, type RateLimitZone } from './rate-limit-handler.ts';

export type ZoneDraft = { -readonly [K in keyof RateLimitZone]?: RateLimitZone[K] };

export const ZONE_USAGE = 'zone <name> { requests <n> per <window>; … }';
const ANNOUNCEMENTS: readonly AnnouncedResponses[] = ['refused', 'always', 'never'];

const MAX_REQUESTS = 1_000_000_000;
/** 30 days in milliseconds. */
const MAX_WINDOW = 30 * 86_400_000;
/** An hour in milliseconds. */
const MAX_DELAY = 3_600_000;
const MIN_KEYS = 1024;
const MAX_KEYS = 16_777_216;
const MAX_COST = 1_000_000;

const count = (minimum: number, maximum: number, description: string): Schema => ({
	type: 'integer',
	minimum,
	maximum,
	description,
});
const time = (minimum: number, maximum: number, description: string): Schema => ({
	type: 'number',
	minimum,
	maximum,
	description,
});

/** Schema of {@link RateLimitZone}. */
export const ZONE_SCHEMA: Schema = {
	type: 'object',
	properties: {
		name: {
			type: 'string',
			pattern: '^[A-Za-z0-9_.-]{1,64}$',
			description: 'Zones of the same name share their counts.',
		},
		key: {
			type: 'string',
			minLength: 1,
			description: 'What is counted separately, with placeholders; default the client address.',
		},
		ipv6_prefix: count(1, 128, 'Bits of an IPv6 client address that form the key; default 64.'),
		requests: count(1, MAX_REQUESTS, 'Number of requests in a window.'),
		window: time(1, MAX_WINDOW, 'Milliseconds.'),
		burst: count(1, MAX_REQUESTS, 'Number of requests that may come at once; default `requests`.'),
		cost: {
			anyOf: [
				{ type: 'integer', minimum: 0, maximum: MAX_COST },
				{ type: 'string', minLength: 1 },
			],
			description: 'How many requests this one counts as: a number, or a string with placeholders; default 1.',
		},
		status_cost: {
			type: 'object',
			description: 'How many more requests a response with this status, or of this class, counts as.',
			patternProperties: { '^[2-5](\\d\\d|xx)$': { type: 'integer', minimum: 1, maximum: MAX_COST } },
			additionalProperties: false,
		},
		delay: time(0, MAX_DELAY, 'Milliseconds for which a request may be delayed; default 0.'),
		dry_run: { type: 'boolean', description: 'True to let requests pass that exceed the limit.' },
		allow: {
			type: 'array',
			items: { type: 'string' },
			description: 'Client addresses and ranges that are not limited.',
		},
		when: { ...MATCHER_SCHEMA, description: 'The requests that are counted; default all.' },
		max_keys: count(MIN_KEYS, MAX_KEYS, 'Maximum number of keys in memory; default 65536.'),
		announce: {
			enum: ANNOUNCEMENTS,
			default: 'refused',
			description: 'Responses with `RateLimit` fields; default `refused`.',
		},
		'@id': { type: 'string' },
	},
	required: ['name', 'requests', 'window'],
	additionalProperties: false,
};

/** Checks the name of a zone and reports whether it is valid. */
export function isZoneName({ text, span }: Word, cx: LowerContext): boolean {
	if (/^[A-Za-z0-9_.-]{1,64}$/.test(text)) return true;
	cx.problem('error', 'rate-limit/zone-name', span, `\`${text}\` cannot be the name of a zone.`, {
		hint: 'Write letters, digits, `_`, `.` and `-`.',
	});
	return false;
}

/** Lowers `<requests> per <window>`. */
export function lowerRequests(words: readonly Word[], zone: ZoneDraft, cx: LowerContext): void {
	const [requests, per, window] = words as readonly [Word, Word, Word];
	cx.oneOf(per, ['per'], 'word between the number and the window');
	keep(zone, 'requests', cx.integer(requests, 1, MAX_REQUESTS));
	keep(zone, 'window', windowOf(window, cx));
}

/** Returns the lines of a zone. */
export function zoneLines(zone: ZoneDraft, cx: LowerContext): { readonly [name: string]: SubdirectiveHandler } {
	const one = (usage: string, lower: (word: Word) => void): SubdirectiveHandler => {
		return (words, at) => {
			cx.noBlock(at);
			if (cx.count(at, words, 1, 1, usage)) lower(words[0]!);
		};
	};
	return {
		requests: (words, at) => {
			cx.noBlock(at);
			if (cx.count(at, words, 3, 3, 'requests <n> per <window>')) lowerRequests(words, zone, cx);
		},
		events: one('events <n>', word => keep(zone, 'requests', cx.integer(word, 1, MAX_REQUESTS))),
		window: one('window <duration>', word => keep(zone, 'window', windowOf(word, cx))),
		key: one('key <text>', word => {
			const key = cx.template(word);
			if (key === '') {
				const message = 'The key is empty: all requests would share one limit.';
				cx.problem('error', 'rate-limit/empty-key', word.span, message, {
					hint: 'Write `static` for one limit for all requests.',
				});
			} else keep(zone, 'key', key === CLIENT_KEY ? undefined : key);
		}),
		ipv6_prefix: one('ipv6_prefix <bits>', word => keep(zone, 'ipv6_prefix', cx.integer(word, 1, 128))),
		burst: one('burst <n>', word => keep(zone, 'burst', cx.integer(word, 1, MAX_REQUESTS))),
		cost: one('cost <n>', word => {
			keep(zone, 'cost', word.text.includes('{') ? cx.template(word) : cx.integer(word, 0, MAX_COST));
		}),
		status_cost: (words, at) => {
			cx.noBlock(at);
			if (!cx.count(at, words, 2, Number.POSITIVE_INFINITY, 'status_cost <status>… <n>')) return;
			zone.status_cost = { ...zone.status_cost, ...statusCosts(words, cx) };
		},
		delay: one('delay <duration>', word => keep(zone, 'delay', period(word, 0, MAX_DELAY, '0 to 1h', cx))),
		match: (words, at) => {
			const matcher = cx.matcherExpression(words, at.block, undefined);
			if (matcher) zone.when = bothMatchers(zone.when, matcher);
		},
		allow: (words, at) => {
			cx.noBlock(at);
			if (cx.count(at, words, 1, Number.POSITIVE_INFINITY, 'allow <range>…'))
				zone.allow = [...(zone.allow ?? []), ...lowerRanges(words, cx)];
		},
		max_keys: one('max_keys <n>', word => keep(zone, 'max_keys', cx.integer(word, MIN_KEYS, MAX_KEYS))),
		announce: one('announce refused|always|never', word => {
			const announced = cx.oneOf(word, ANNOUNCEMENTS, 'kind of responses');
			keep(zone, 'announce', announced === 'refused' ? undefined : announced);
		}),
		dry_run: (words, at) => {
			cx.noBlock(at);
			if (cx.count(at, words, 0, 0, 'dry_run')) zone.dry_run = true;
		},
	};
}

/** Reports whether the block of a line has a limit, right or wrong. */
export function saysLimit({ block }: Line): boolean {
	return block?.lines.some(({ words }) => ['requests', 'events', 'window'].includes(words[0]!.text)) === true;
}

/**
 * Checks what the lines of a zone say together, and returns the zone unless it is incomplete.
 * @param limited Whether the zone has a limit, right or wrong.
 */
export function finishZone(zone: ZoneDraft, line: Line, limited: boolean, cx: LowerContext): RateLimitZone | undefined {
	const { name, requests, window, burst = requests, cost, delay, dry_run: dryRun, key, ipv6_prefix: prefix } = zone;
	const problem = (code: string, message: string, hint: string): void =>
		cx.problem('error', `rate-limit/${code}`, line.words[0]!.span, message, { hint });
	if (!limited) problem('no-limit', 'The zone has no limit.', 'Write `requests <n> per <window>`.');
	if (name === undefined || requests === undefined || window === undefined) return undefined;
	if (typeof cost === 'number' && cost > burst!) {
		const message = `A request costs ${cost}, but the burst is ${burst}: every request would be refused.`;
		problem('cost', message, 'Raise `burst`, or lower `cost`.');
	}
	if (prefix !== undefined && key !== undefined) {
		const message = '`ipv6_prefix` has no effect on this key.';
		problem('prefix', message, 'It applies to the key `{client_ip}`. Remove it.');
	}
	if (delay !== undefined && dryRun)
		problem('dry-run', '`delay` has no effect together with `dry_run`.', 'Remove one of them.');
	const keyLine = line.block?.lines.find(({ words }) => words[0]!.text === 'key');
	const spans = keyLine && { key: keyLine.words.at(-1)!.span };
	return cx.origin({ ...zone, name, requests, window }, line.span, spans);
}

/** Lowers `<status>… <n>` to the cost of each status. */
function statusCosts(words: readonly Word[], cx: LowerContext): { readonly [status: string]: number } {
	const cost = cx.integer(words.at(-1)!, 1, MAX_COST);
	const costs: { [status: string]: number } = {};
	for (const { text, span } of words.slice(0, -1)) {
		if (!/^[2-5](?:\d\d|xx)$/.test(text)) {
			cx.problem('error', 'rate-limit/status', span, `\`${text}\` is not a status or a class of statuses.`, {
				hint: 'Write a status such as `401`, or a class such as `5xx`.',
			});
		} else if (cost !== undefined) costs[text] = cost;
	}
	return costs;
}

function bothMatchers(first: Matcher | undefined, second: Matcher): Matcher {
	return first ? { type: 'all', of: [first, second] } : second;
}

function windowOf(word: Word, cx: LowerContext): number | undefined {
	return period(word, 1, MAX_WINDOW, '1ms to 720h', cx);
}

function period(word: Word, min: number, max: number, range: string, cx: LowerContext): number | undefined {
	const value = cx.duration(word);
	if (value === undefined || (value >= min && value <= max)) return value;
	cx.problem('error', 'value/out-of-range', word.span, `\`${word.text}\` is out of range.`, {
		hint: `Write a time from ${range}.`,
	});
	return undefined;
}

function keep<K extends keyof ZoneDraft>(zone: ZoneDraft, field: K, value: ZoneDraft[K] | undefined): void {
	if (value !== undefined) zone[field] = value;
}
