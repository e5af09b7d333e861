/** Lowering and schema of the zones of `rate_limit`. */
import type { Schema } from '../../../document/schema-type.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import {
	checkIpv6Prefix,
	countSchema,
	limitZoneHandlers,
	limitZoneSchemas,
	lowerPeriod,
	recordZoneOrigin,
	setField,
	singleWordHandler,
	type ZoneDirective,
} from '../../words/limit-zone.ts';
import {
	type AnnouncedResponses,
	DEFAULT_MAX_KEYS,
	DEFAULT_REDIS_WAIT_MS,
	type RateLimitZone,
	type ZoneSharing,
} from './rate-limit-handler.ts';
import type { UnavailablePolicy } from './rate-limiter.ts';

type ZoneDraft = { -readonly [K in keyof RateLimitZone]?: RateLimitZone[K] };

const CODE_PREFIX = 'rate-limit';
const ANNOUNCED_RESPONSES: readonly AnnouncedResponses[] = ['refused', 'always', 'never'];
const UNAVAILABLE_POLICIES: readonly UnavailablePolicy[] = ['local', 'allow', 'deny'];

const MAX_REQUESTS = 1_000_000_000;
/** Maximum of `window`: 30 days. */
const MAX_WINDOW_MS = 30 * 86_400_000;
/** Maximum of `delay`: one hour. */
const MAX_DELAY_MS = 3_600_000;
const MAX_COST = 1_000_000;
/** Maximum of `wait`: 10 seconds. */
const MAX_REDIS_WAIT_MS = 10_000;
const SHARED_USAGE = 'shared [{ batch <n>; wait <duration>; on_error local|allow|deny }]';

const millisecondsSchema = (minimum: number, maximum: number, description: string): Schema => ({
	type: 'number',
	minimum,
	maximum,
	description,
});
const { name, key, ipv6_prefix, ...otherFields } = limitZoneSchemas(DEFAULT_MAX_KEYS);

export const RATE_LIMIT_ZONE_SCHEMA: Schema = {
	type: 'object',
	properties: {
		name: name!,
		key: key!,
		ipv6_prefix: ipv6_prefix!,
		requests: countSchema(1, MAX_REQUESTS, 'Number of requests in a window.'),
		window: millisecondsSchema(1, MAX_WINDOW_MS, 'Milliseconds.'),
		burst: countSchema(1, MAX_REQUESTS, 'Number of requests that may come at once; default `requests`.'),
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
		delay: millisecondsSchema(0, MAX_DELAY_MS, 'Milliseconds for which a request may be delayed; default 0.'),
		...otherFields,
		announce: {
			enum: ANNOUNCED_RESPONSES,
			default: 'refused',
			description: 'Responses with `RateLimit` fields; default `refused`.',
		},
		shared: {
			type: 'object',
			description: 'Present if the machines of the cluster share the counts.',
			properties: {
				batch: countSchema(
					1,
					MAX_REQUESTS,
					'Number of requests of a key that a machine admits before Redis has counted them; default a tenth of the limit.',
				),
				wait: {
					type: 'number',
					minimum: 0,
					maximum: MAX_REDIS_WAIT_MS,
					default: DEFAULT_REDIS_WAIT_MS,
					description: 'Maximum milliseconds for which a request waits for Redis.',
				},
				on_error: {
					enum: UNAVAILABLE_POLICIES,
					default: 'local',
					description: 'What decides if Redis is unavailable or too slow: the limit of this machine alone, or nothing.',
				},
			},
			additionalProperties: false,
		},
	},
	required: ['name', 'requests', 'window'],
	additionalProperties: false,
};

/** Lowers the lines that only zones of `rate_limit` have; `lowerZones` lowers the lines that all zones share. */
export const RATE_LIMIT_ZONES: ZoneDirective<RateLimitZone> = {
	usage: 'rate_limit [matcher] <zone> <requests> per <window> [{ … }]',
	zoneUsage: 'zone <name> { requests <n> per <window>; … }',
	codePrefix: CODE_PREFIX,
	limitWordCount: 3,
	limitLineNames: ['requests', 'events', 'window'],
	wordsOfInnerBlocks: { batch: 'shared', wait: 'shared', on_error: 'shared' },
	lowerLimit: lowerRequests,
	zoneHandlers: (zone, cx) => ({
		requests: (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 3, 3, 'requests <n> per <window>')) lowerRequests(words, zone, cx);
		},
		events: singleWordHandler(cx, 'events <n>', word => setField(zone, 'requests', cx.integer(word, 1, MAX_REQUESTS))),
		window: singleWordHandler(cx, 'window <duration>', word => setField(zone, 'window', lowerWindow(word, cx))),
		burst: singleWordHandler(cx, 'burst <n>', word => setField(zone, 'burst', cx.integer(word, 1, MAX_REQUESTS))),
		cost: singleWordHandler(cx, 'cost <n>', word => {
			setField(zone, 'cost', word.text.includes('{') ? cx.template(word) : cx.integer(word, 0, MAX_COST));
		}),
		status_cost: (words, innerLine) => {
			cx.noBlock(innerLine);
			if (!cx.count(innerLine, words, 2, Number.POSITIVE_INFINITY, 'status_cost <status>… <n>')) return;
			zone.status_cost = { ...zone.status_cost, ...lowerStatusCosts(words, cx) };
		},
		delay: singleWordHandler(cx, 'delay <duration>', word =>
			setField(zone, 'delay', lowerPeriod(word, 0, MAX_DELAY_MS, '0 to 1h', cx)),
		),
		announce: singleWordHandler(cx, 'announce refused|always|never', word => {
			const announcedResponses = cx.oneOf(word, ANNOUNCED_RESPONSES, 'kind of responses');
			setField(zone, 'announce', announcedResponses === 'refused' ? undefined : announcedResponses);
		}),
		shared: (words, innerLine) => {
			if (cx.count(innerLine, words, 0, 0, SHARED_USAGE)) zone.shared = lowerSharing(innerLine, cx);
		},
		...limitZoneHandlers(zone, CODE_PREFIX, cx),
	}),
	finishZone: (zone, line, hasLimit, cx) => {
		const { name, requests, window, burst = requests, cost, delay, dry_run: dryRun, shared } = zone;
		const reportProblem = (code: string, message: string, hint: string): void =>
			cx.problem('error', `${CODE_PREFIX}/${code}`, line.words[0]!.span, message, { hint });
		if (!hasLimit) {
			const zoneName = name === undefined ? '' : ` \`${name}\``;
			reportProblem(
				'no-limit',
				`The zone${zoneName} has no limit.`,
				'Write `rate_limit <zone> <requests> per <window>`, or `requests <n> per <window>` in its block.',
			);
		}
		if (name === undefined || requests === undefined || window === undefined) return undefined;
		if (typeof cost === 'number' && cost > burst!) {
			const message = `A request costs ${cost}, but the burst is ${burst}: every request would be refused.`;
			reportProblem('cost', message, 'Raise `burst`, or lower `cost`.');
		}
		if (shared?.batch !== undefined && shared.batch > burst!) {
			const message = `The batch is ${shared.batch}, but the burst is ${burst}: each machine would admit the whole burst by itself.`;
			reportProblem('batch', message, 'Lower `batch`. Without it, a batch is a tenth of the limit.');
		}
		checkIpv6Prefix(zone, line, CODE_PREFIX, cx);
		if (delay !== undefined && dryRun)
			reportProblem('dry-run', '`delay` has no effect together with `dry_run`.', 'Remove one of them.');
		return recordZoneOrigin({ ...zone, name, requests, window }, line, cx);
	},
};

/** Lowers `<requests> per <window>`. */
function lowerRequests(words: readonly Word[], zone: ZoneDraft, cx: LowerContext): void {
	const [requestsWord, perWord, windowWord] = words as readonly [Word, Word, Word];
	cx.oneOf(perWord, ['per'], 'word between the number and the window');
	setField(zone, 'requests', cx.integer(requestsWord, 1, MAX_REQUESTS));
	setField(zone, 'window', lowerWindow(windowWord, cx));
}

/** Lowers the block of `shared`. */
function lowerSharing(line: Line, cx: LowerContext): ZoneSharing {
	const sharing: { -readonly [K in keyof ZoneSharing]?: ZoneSharing[K] } = {};
	cx.subdirectives(
		line.block,
		{
			batch: singleWordHandler(cx, 'batch <n>', word => setField(sharing, 'batch', cx.integer(word, 1, MAX_REQUESTS))),
			wait: singleWordHandler(cx, 'wait <duration>', word =>
				setField(sharing, 'wait', lowerPeriod(word, 0, MAX_REDIS_WAIT_MS, '0 to 10s', cx)),
			),
			on_error: singleWordHandler(cx, 'on_error local|allow|deny', word =>
				setField(sharing, 'on_error', cx.oneOf(word, UNAVAILABLE_POLICIES, 'policy')),
			),
		},
		'shared',
	);
	return sharing;
}

/** Lowers the words `<status>… <n>` of `status_cost`. Returns the cost by status. */
function lowerStatusCosts(words: readonly Word[], cx: LowerContext): { readonly [status: string]: number } {
	const cost = cx.integer(words.at(-1)!, 1, MAX_COST);
	const costsByStatus: { [status: string]: number } = {};
	for (const { text, span } of words.slice(0, -1)) {
		if (!/^[2-5](?:\d\d|xx)$/.test(text)) {
			cx.problem('error', 'rate-limit/status', span, `\`${text}\` is not a status or a class of statuses.`, {
				hint: 'Write a status such as `401`, or a class such as `5xx`.',
			});
		} else if (cost !== undefined) costsByStatus[text] = cost;
	}
	return costsByStatus;
}

function lowerWindow(word: Word, cx: LowerContext): number | undefined {
	return lowerPeriod(word, 1, MAX_WINDOW_MS, '1ms to 720h', cx);
}
