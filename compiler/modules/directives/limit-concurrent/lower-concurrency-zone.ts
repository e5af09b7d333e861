/** Lowering and schema of the zones of `limit_concurrent`. */
import type { Schema } from '../../../document/schema-type.ts';
import type { Word } from '../../../syntax/ast.ts';
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
	type ConcurrencyZone,
	DEFAULT_CONCURRENT_KEYS,
	DEFAULT_QUEUE_TIMEOUT_MS,
	DEFAULT_REFUSAL_STATUS,
} from './limit-concurrent-handler.ts';

type ZoneDraft = { -readonly [K in keyof ConcurrencyZone]?: ConcurrencyZone[K] };

const CODE_PREFIX = 'limit-concurrent';
const REFUSAL_STATUSES = ['503', '429'] as const;
const MAX_RUNNING_REQUESTS = 1_000_000;
const MAX_QUEUED_REQUESTS = 100_000;
/** Maximum of `timeout`: one hour. */
const MAX_TIMEOUT_MS = 3_600_000;
/** Largest permitted `max_keys`. More would be of no use, because only keys of running and waiting requests are counted. */
const MAX_COUNTED_KEYS = 1_048_576;

const { name, key, ipv6_prefix, ...otherFields } = limitZoneSchemas(DEFAULT_CONCURRENT_KEYS, MAX_COUNTED_KEYS);

export const CONCURRENCY_ZONE_SCHEMA: Schema = {
	type: 'object',
	properties: {
		name: name!,
		key: key!,
		ipv6_prefix: ipv6_prefix!,
		requests: countSchema(1, MAX_RUNNING_REQUESTS, 'Number of requests that run at a time.'),
		queue: countSchema(1, MAX_QUEUED_REQUESTS, 'Number of requests that wait for a place; default 0.'),
		timeout: {
			type: 'number',
			minimum: 1,
			maximum: MAX_TIMEOUT_MS,
			description: `Milliseconds for which a request waits; default ${DEFAULT_QUEUE_TIMEOUT_MS}.`,
		},
		status: {
			enum: REFUSAL_STATUSES.map(Number),
			description: `Status of refused requests; default ${DEFAULT_REFUSAL_STATUS}.`,
		},
		...otherFields,
	},
	required: ['name', 'requests'],
	additionalProperties: false,
};

/** Lowers the lines that only zones of `limit_concurrent` have; `lowerZones` lowers the lines that all zones share. */
export const CONCURRENCY_ZONES: ZoneDirective<ConcurrencyZone> = {
	usage: 'limit_concurrent [matcher] <zone> <requests> [{ … }]',
	zoneUsage: 'zone <name> { requests <n>; … }',
	codePrefix: CODE_PREFIX,
	limitWordCount: 1,
	limitLineNames: ['requests'],
	lowerLimit: ([requests], zone, cx) => lowerRequests(requests!, zone, cx),
	zoneHandlers: (zone, cx) => ({
		requests: singleWordHandler(cx, 'requests <n>', word => lowerRequests(word, zone, cx)),
		queue: singleWordHandler(cx, 'queue <n>', word =>
			setField(zone, 'queue', cx.integer(word, 1, MAX_QUEUED_REQUESTS)),
		),
		timeout: singleWordHandler(cx, 'timeout <duration>', word =>
			setField(zone, 'timeout', lowerPeriod(word, 1, MAX_TIMEOUT_MS, '1ms to 1h', cx)),
		),
		status: singleWordHandler(cx, 'status 503|429', word => {
			const status = cx.oneOf(word, REFUSAL_STATUSES, 'status of refused requests');
			if (status !== undefined && Number(status) !== DEFAULT_REFUSAL_STATUS) zone.status = Number(status);
		}),
		...limitZoneHandlers(zone, CODE_PREFIX, cx, MAX_COUNTED_KEYS),
	}),
	finishZone: (zone, line, hasLimit, cx) => {
		const { name, requests, queue, timeout, dry_run: dryRun } = zone;
		const reportProblem = (code: string, message: string, hint: string): void =>
			cx.problem('error', `${CODE_PREFIX}/${code}`, line.words[0]!.span, message, { hint });
		if (!hasLimit) {
			const zoneName = name === undefined ? '' : ` \`${name}\``;
			reportProblem(
				'no-limit',
				`The zone${zoneName} has no limit.`,
				'Write `limit_concurrent <zone> <requests>`, or `requests <n>` in its block.',
			);
		}
		if (name === undefined || requests === undefined) return undefined;
		checkIpv6Prefix(zone, line, CODE_PREFIX, cx);
		if (queue !== undefined && dryRun)
			reportProblem('dry-run', '`queue` has no effect together with `dry_run`.', 'Remove one of them.');
		if (timeout !== undefined && queue === undefined)
			reportProblem('timeout', '`timeout` has no effect, because no request waits.', 'Add `queue <n>`, or remove it.');
		return recordZoneOrigin({ ...zone, name, requests }, line, cx);
	},
};

function lowerRequests(word: Word, zone: ZoneDraft, cx: LowerContext): void {
	setField(zone, 'requests', cx.integer(word, 1, MAX_RUNNING_REQUESTS));
}
