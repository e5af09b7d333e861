/**
 * `POST /load`: replaces the whole configuration.
 *
 * The body is JSON in the server's schema (`application/json`, any `+json`, or no Content-Type), a Caddyfile
 * (`text/caddyfile` or `text/compatfile`) or a Configfile (`text/configfile`). Imports and relative paths in text are
 * resolved relative to the server's working directory. Diagnostics quote an imported file only if a running configuration was
 * read from it; otherwise they give only its name and the line, and `svc validate` on the machine shows more.
 *
 * `application/vnd.svc.placed+json` is `{"document","places":{"sites":[["Configfile:3"]],"routes":[]}}`: a document that was
 * compiled elsewhere, with the file and line that each of its steps comes from, in document order. Logs show them as `at`.
 *
 * - 200 `{"generation":N,"diagnostics":[warnings]}`: every thread serves it, and no later request sees the previous one.
 *   `"unchanged":true` if it equals the running configuration and the files that it names have not changed either.
 *   A warning `admin/not-saved` means that it is served, but could not be saved for `svc run --resume`.
 * - 400, code `invalid_config`, with all diagnostics: it does not compile; the previous configuration keeps serving.
 * - 409, code `restart_required`, with `reasons` (`[{"code","subject","message"}]`): nothing was applied.
 * - 409, code `configured_by_cluster`: the configuration comes from the cluster (`svc run --cluster`). A dry run is possible.
 * - 503, code `load_failed`: a thread died or a stop began meanwhile; nothing was applied.
 * - 413, 415: see `ADMIN_ERRORS` in errors.ts.
 *
 * `?force` loads even an unchanged configuration.
 *
 * `?handover` also loads a configuration that would otherwise get 409 `restart_required`: a new process takes over every
 * listening socket, and this one ends once its connections have ended. The 200 then has `"handover":{"pid"}`. If the new process
 * fails, or is not ready within two minutes (`?handover=30s` for another time, 10ms to 1h), it is ended, and this one serves on:
 * 503 `handover_failed`.
 *
 * With `?handover&confirm=30s`, this process stays without accepting connections until the load is confirmed. A rollback is a
 * handover to a third process with the previous configuration and program, which this process starts itself if the new one has
 * failed.
 *
 * `?dry_run` applies nothing: 200 `{"result","diagnostics","changes","diff"}`, and `reasons` for a restart. `result` is `swap`,
 * `unchanged`, `restart_required` or `refused`; `changes` are JSON Patch operations, secrets redacted, with the old values
 * in `from` and the new ones in `to`.
 *
 * `?confirm=30s` rolls the load back unless `POST /load/confirm` follows in time, and with `max_error_rate=0.05` as soon as
 * more than that share of the responses (of at least 20) has a status of 500 or more. The answer has
 * `"confirm":{"generation","until"}`. `POST /load/revert` rolls back at once. Until the load is confirmed or rolled
 * back, other changes are 409 `confirmation_pending`. A load that could not be rolled back, because that would need a restart or
 * the running configuration no longer compiles, is 409 `irreversible`, with `reasons` or `diagnostics`. A rollback that fails
 * nevertheless is an error in the log and in `svc_config_rollback_failed`; `POST /load/revert` retries it as long as nothing else
 * is loaded.
 */
import type { ConfigFormat } from '../compiler/dialects/dialect.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { parseDuration } from '../compiler/lower/context/values.ts';
import type { LoadPreview } from '../runtime/compile/load-results.ts';
import type { RuntimeControl } from '../runtime/main/control.ts';
import type { ConfirmationTerms } from './confirmation.ts';
import { type AdminContext, type AdminEndpoint, type AdminOperation, answerJson, type JsonSchema } from './endpoint.ts';
import { AdminError, refusalMessage } from './errors.ts';
import {
	answerHandover,
	answerOutcome,
	CHANGE_ERROR_CODES,
	DIAGNOSTICS_SCHEMA,
	irreversibleError,
	OUTCOME_SCHEMA,
} from './outcome.ts';
import { mediaType, readText, refuseForms, unsupportedMediaTypeError } from './request-text.ts';

/** Media type of a document with the file and line of each of its steps, which logs show. */
const PLACED_DOCUMENT_TYPE = 'application/vnd.svc.placed+json';
const ACCEPTED_TYPES = ['application/json', 'text/caddyfile', 'text/compatfile', 'text/configfile'] as const;

/** Maximum milliseconds that a request may allow for a confirmation or for the start of a new process: an hour. */
const MAX_TIME_LIMIT_MS = 3_600_000;

/** The media types in which a configuration can be sent, each with the schema of its body. */
export const CONFIGURATION_TYPES: AdminOperation['body'] & object = {
	'application/json': {
		type: 'object',
		description: "A document in the server's schema, which `svc adapt --schema` prints.",
	},
	'text/configfile': { type: 'string', description: 'A Configfile.' },
	'text/caddyfile': { type: 'string', description: 'A Caddyfile.' },
	'text/compatfile': { type: 'string', description: 'A Compatfile: the same as a Caddyfile.' },
};

const QUERY_PARAMETERS: AdminOperation['query'] & object = {
	dry_run: { description: 'Reports what would happen, without applying anything.', schema: { type: 'boolean' } },
	force: {
		description:
			'Loads even an unchanged configuration: everything is built again, and data outside the document, such as trust pools, is read again.',
		schema: { type: 'boolean' },
	},
	handover: {
		description:
			'Carries out what needs a restart by handing over to a new process, without losing a connection. A duration, 10ms to 1h, is the time for each step of the new process. With `confirm`, this also carries out what could otherwise not be rolled back.',
		schema: { type: 'string' },
	},
	confirm: {
		description: 'Rolls the load back unless it is confirmed within this time, 1s to 1h.',
		schema: { type: 'string' },
	},
	max_error_rate: {
		description: 'With `confirm`: rolls back when more than this share of the responses has a status of 500 or more.',
		schema: { type: 'number', minimum: 0, maximum: 1 },
	},
};

const PREVIEW_SCHEMA: JsonSchema = {
	type: 'object',
	properties: {
		result: { enum: ['swap', 'unchanged', 'restart_required', 'refused', 'irreversible'] },
		diagnostics: DIAGNOSTICS_SCHEMA,
		reasons: { type: 'array', items: { $ref: '#/components/schemas/RestartReason' } },
		changes: {
			type: 'array',
			items: {
				type: 'object',
				properties: { op: { enum: ['add', 'remove', 'replace'] }, path: { type: 'string' }, from: {}, to: {} },
				required: ['op', 'path'],
				additionalProperties: false,
			},
		},
		diff: {
			type: 'object',
			description:
				'For which requests the configurations behave differently, as `svc diff --format json` prints it, without reading files or the environment; or `unavailable` with the reason.',
		},
	},
	required: ['result', 'diagnostics'],
	additionalProperties: false,
};

/** Returns the format for a request's media type, or `fallback` if the request has none. Throws AdminError 415. */
export function configurationFormatOf(x: Exchange, fallback: ConfigFormat): ConfigFormat {
	const type = mediaType(x);
	if (type === undefined) return fallback;
	if (type === 'text/caddyfile' || type === 'text/compatfile') return 'compatfile';
	if (type === 'text/configfile') return 'configfile';
	if (type === 'application/json' || /^application\/[^/]+\+json$/.test(type)) return 'json';
	throw unsupportedMediaTypeError(type, ACCEPTED_TYPES);
}

export const load: AdminEndpoint = {
	path: '/load',
	operationsByMethod: {
		POST: {
			summary: 'Replaces the whole configuration.',
			query: QUERY_PARAMETERS,
			body: {
				...CONFIGURATION_TYPES,
				[PLACED_DOCUMENT_TYPE]: {
					type: 'object',
					description:
						'A document, and the place in the text of each step of its sites and named routes, for `at` in logs.',
					properties: {
						document: { type: 'object' },
						places: {
							type: 'object',
							properties: {
								sites: { type: 'array', items: { type: 'array', items: { type: 'string' } } },
								routes: { type: 'array', items: { type: 'string' } },
							},
						},
					},
					required: ['document'],
				},
			},
			answer: {
				description: 'The configuration was applied; with `dry_run`, what would happen.',
				type: 'application/json',
				schema: { anyOf: [OUTCOME_SCHEMA, PREVIEW_SCHEMA] },
			},
			errors: [...CHANGE_ERROR_CODES, 'handover_failed'],
			run: loadConfiguration,
		},
	},
};

async function loadConfiguration(x: Exchange, cx: AdminContext): Promise<void> {
	const { runtime, confirmation } = cx;
	const query = new URLSearchParams(x.request.query);
	const terms = parseConfirmationTerms(query);
	const handoverTerms = parseHandover(query);
	const format = configurationFormatOf(x, 'json');
	const input = {
		format,
		text: await readText(x),
		name: '<request>',
		remote: true,
		...(mediaType(x) === PLACED_DOCUMENT_TYPE && { placed: true }),
	};
	const loadOptions = { force: isFlagSet(query, 'force'), reversible: terms !== undefined };
	if (isFlagSet(query, 'dry_run')) {
		answerJson(x, 200, JSON.stringify(await runtime.preview(input, { ...loadOptions, compares: true })));
		return;
	}
	cx.refuseIfConfiguredByCluster();
	cx.refuseWhilePending();
	// A load that needs a new process would be counted and logged as a failure, so a preview determines first whether it does.
	if (handoverTerms && needsNewProcess(await runtime.preview(input, loadOptions))) {
		if (terms) await refuseIrreversible(runtime);
		answerHandover(x, await cx.handOver({ input, shouldSave: true, confirm: terms, ...handoverTerms }));
		return;
	}
	const outcome = await cx.recordChange(x, await runtime.load(input, loadOptions), terms !== undefined);
	if (terms && outcome.result === 'applied' && !outcome.unchanged) {
		confirmation.awaitLoad(outcome.generation, outcome.replacedDocument!, terms);
		answerOutcome(x, outcome, { confirm: confirmation.pending });
	} else answerOutcome(x, outcome);
}

/** Reports whether loading the configuration, or returning to the running one, needs a new process. */
function needsNewProcess(preview: LoadPreview): boolean {
	return preview.result === 'restart_required' || (preview.result === 'irreversible' && preview.reasons.length > 0);
}

/** Throws AdminError 409 if another process could not serve the running configuration, because files that it names have changed. */
export async function refuseIrreversible(runtime: RuntimeControl): Promise<void> {
	if (runtime.generation === 0) return;
	const input = { format: 'json', text: runtime.document, name: '<running>' } as const;
	const preview = await runtime.preview(input, { force: true });
	if (preview.result !== 'refused') return;
	const { diagnostics } = preview;
	throw irreversibleError(refusalMessage(diagnostics), { diagnostics, reasons: [] });
}

export const confirmLoad: AdminEndpoint = {
	path: '/load/confirm',
	operationsByMethod: {
		POST: {
			summary: 'Confirms the pending load.',
			answer: {
				description: 'The load is confirmed.',
				type: 'application/json',
				schema: {
					type: 'object',
					properties: { generation: { type: 'integer' }, diagnostics: DIAGNOSTICS_SCHEMA },
					required: ['generation', 'diagnostics'],
				},
			},
			errors: ['nothing_to_confirm', 'unsupported_media_type'],
			run: async (x, cx) => {
				refuseForms(x);
				const load = cx.confirmation.confirm();
				if (load === undefined) throw nothingPendingError();
				const diagnostics = load.shouldSave ? await cx.saveConfirmed() : [];
				answerJson(x, 200, JSON.stringify({ generation: load.generation, diagnostics }));
			},
		},
	},
};

export const revertLoad: AdminEndpoint = {
	path: '/load/revert',
	operationsByMethod: {
		POST: {
			summary: 'Rolls back the pending load.',
			answer: {
				description: 'The previous configuration is being served again.',
				type: 'application/json',
				schema: OUTCOME_SCHEMA,
			},
			errors: ['nothing_to_confirm', 'load_failed', 'invalid_config', 'restart_required', 'unsupported_media_type'],
			run: async (x, cx) => {
				refuseForms(x);
				const outcome = await cx.confirmation.revert('requested');
				if (outcome === undefined) throw nothingPendingError();
				if (outcome.result === 'handed_over') answerHandover(x, outcome);
				else answerOutcome(x, await cx.recordChange(x, outcome));
			},
		},
	},
};

function nothingPendingError(): AdminError {
	return new AdminError(404, 'nothing_to_confirm', 'No load is pending.');
}

/** Parses a flag: `?name`, `?name=1` and `?name=true` are true. */
function isFlagSet(query: URLSearchParams, name: string): boolean {
	const value = query.get(name);
	if (value === null || value === '0' || value === 'false') return false;
	if (value === '' || value === '1' || value === 'true') return true;
	throw new AdminError(400, 'bad_request', `\`${name}\` must be true or false.`);
}

/** Minimum time limit, in milliseconds, for a new process to become ready. */
const MIN_READY_MS = 10;

/** Reports whether a new process may be given this many milliseconds to become ready. */
export function isReadyTimeAllowed(milliseconds: number): boolean {
	return milliseconds >= MIN_READY_MS && milliseconds <= MAX_TIME_LIMIT_MS;
}

/** Parses the query parameter `handover`; undefined if it is absent. */
function parseHandover(query: URLSearchParams): { readonly within?: number } | undefined {
	const handoverText = query.get('handover');
	const milliseconds = handoverText === null ? undefined : parseDuration(handoverText);
	if (milliseconds === undefined && !isFlagSet(query, 'handover')) return undefined;
	if (milliseconds === undefined || handoverText === '0' || handoverText === '1') return {};
	if (isReadyTimeAllowed(milliseconds)) return { within: milliseconds };
	throw new AdminError(400, 'bad_request', '`handover` must be true, false or a duration from 10ms to 1h.');
}

function parseConfirmationTerms(query: URLSearchParams): ConfirmationTerms | undefined {
	const confirmText = query.get('confirm');
	const rateText = query.get('max_error_rate');
	if (confirmText === null) {
		if (rateText === null) return undefined;
		throw new AdminError(400, 'bad_request', '`max_error_rate` needs `confirm`.');
	}
	return {
		within: parseConfirmationTime(confirmText),
		maxErrorRate: rateText === null ? undefined : parseErrorRate(rateText),
	};
}

/** Parses the time until a load must be confirmed, in milliseconds. Throws AdminError. */
export function parseConfirmationTime(value: unknown): number {
	const milliseconds = typeof value === 'string' ? parseDuration(value) : undefined;
	if (milliseconds !== undefined && milliseconds >= 1000 && milliseconds <= MAX_TIME_LIMIT_MS) return milliseconds;
	throw new AdminError(400, 'bad_request', '`confirm` must be a duration from 1s to 1h.');
}

/** Parses the error rate above which a load is rolled back. Throws AdminError. */
export function parseErrorRate(value: unknown): number {
	const rate = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
	if (typeof rate === 'number' && rate >= 0 && rate <= 1) return rate;
	throw new AdminError(400, 'bad_request', '`max_error_rate` must be a number from 0 to 1.');
}
