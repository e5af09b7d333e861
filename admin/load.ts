/**
 * `POST /load`: replaces the whole configuration.
 *
 * The body is JSON in the server's schema (`application/json`, any `+json`, or no Content-Type), a Caddyfile
 * (`text/caddyfile` or `text/compatfile`) or a Configfile (`text/configfile`). Imports and relative paths of text resolve
 * against the working directory of the server. Diagnostics quote an imported file only if a running configuration was read
 * from it; otherwise they name the place, and `svc validate` on the machine says what is wrong.
 *
 * `application/vnd.svc.placed+json` is `{"document","places":{"sites":[["Configfile:3"]],"routes":[]}}`: a document that was
 * compiled elsewhere, with the places of its steps, in the order in which they stand in it, for `at` in logs.
 *
 * - 200 `{"generation":N,"diagnostics":[warnings]}`: every thread serves it, and no later request sees the older one.
 *   `"unchanged":true` when it is the configuration that was already serving, and the files that it names hold the same.
 *   A warning `admin/not-saved` says that it is served, but could not be saved for `svc run --resume`.
 * - 400, code `invalid_config`, with all diagnostics: it does not compile; the old one goes on serving.
 * - 409, code `restart_required`, with `reasons` (`[{"code","subject","message"}]`): nothing was applied.
 * - 503, code `load_failed`: a thread died or a stop began meanwhile; nothing was applied.
 * - 413, 415: see the codes.
 *
 * `?force` loads such a configuration all the same.
 *
 * `?dry_run` applies nothing: 200 `{"result","diagnostics","changes"}`, and `reasons` for a restart. `result` is `swap`,
 * `unchanged`, `restart_required` or `refused`; `changes` are operations of a JSON Patch, secrets hidden, with the values
 * that go as `from` and those that come as `to`.
 *
 * `?confirm=30s` takes the load back unless `POST /load/confirm` comes in time, and with `max_error_rate=0.05` as soon as
 * more than that share of the answers (20 at least) has a status of 500 or more. The answer has
 * `"confirm":{"generation","until"}`. `POST /load/revert` takes it back at once. Until then other changes are 409
 * `confirmation_pending`. A load that could not be taken back, because the way back would need a restart or the
 * configuration that is being served no longer compiles, is 409 `irreversible`, with `reasons` or `diagnostics`.
 * A rollback that fails all the same is an error in the log and in `svc_config_rollback_failed`; `POST /load/revert` tries
 * again for as long as nothing else is loaded.
 */
import type { ConfigFormat } from '../compiler/dialects/dialect.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { parseDuration } from '../compiler/lower/values.ts';
import type { ConfirmationTerms } from './confirmation.ts';
import {
	type AdminContext,
	type AdminEndpoint,
	type AdminOperation,
	type AnswerSchema,
	answerJson,
} from './endpoint.ts';
import { AdminError } from './errors.ts';
import { answerOutcome, CHANGE_ERRORS, DIAGNOSTICS, OUTCOME } from './outcome.ts';
import { mediaType, readText, refuseForms, unsupported } from './request-text.ts';

/** A document with the places of its steps in a text, which logs show. */
const PLACED = 'application/vnd.svc.placed+json';
const TAKEN = ['application/json', 'text/caddyfile', 'text/compatfile', 'text/configfile'] as const;

/** Milliseconds that a load may wait for its confirmation: an hour. */
const LONGEST_CONFIRMATION = 3_600_000;

/** Bodies that are a configuration. */
export const CONFIGURATION_TYPES: AdminOperation['body'] & object = {
	'application/json': {
		type: 'object',
		description: "A document in the server's schema: `svc adapt --schema` prints it.",
	},
	'text/configfile': { type: 'string', description: 'A Configfile.' },
	'text/caddyfile': { type: 'string', description: 'A Caddyfile.' },
	'text/compatfile': { type: 'string', description: 'A Compatfile: the same as a Caddyfile.' },
};

const QUERY: AdminOperation['query'] & object = {
	dry_run: { description: 'Tells what would happen, and applies nothing.', schema: { type: 'boolean' } },
	force: {
		description:
			'Loads even what is being served already: everything is built again, and what is not in the document is read again, such as trust pools from addresses or stores.',
		schema: { type: 'boolean' },
	},
	confirm: {
		description: 'Takes the load back unless it is confirmed in this time, 1s to 1h.',
		schema: { type: 'string' },
	},
	max_error_rate: {
		description: 'With `confirm`: takes it back when more than this share of the answers has a status of 500 or more.',
		schema: { type: 'number', minimum: 0, maximum: 1 },
	},
};

const PREVIEW: AnswerSchema = {
	type: 'object',
	properties: {
		result: { enum: ['swap', 'unchanged', 'restart_required', 'refused', 'irreversible'] },
		diagnostics: DIAGNOSTICS,
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
	},
	required: ['result', 'diagnostics'],
	additionalProperties: false,
};

/** The format that a request's media type names; `otherwise` when it names none. Throws AdminError 415. */
export function formatOf(x: Exchange, otherwise: ConfigFormat): ConfigFormat {
	const type = mediaType(x);
	if (type === undefined) return otherwise;
	if (type === 'text/caddyfile' || type === 'text/compatfile') return 'compatfile';
	if (type === 'text/configfile') return 'configfile';
	if (type === 'application/json' || /^application\/[^/]+\+json$/.test(type)) return 'json';
	throw unsupported(type, TAKEN);
}

export const load: AdminEndpoint = {
	path: '/load',
	methods: {
		POST: {
			summary: 'Replaces the whole configuration.',
			query: QUERY,
			body: {
				...CONFIGURATION_TYPES,
				[PLACED]: {
					type: 'object',
					description: 'A document, and where each step of its sites and named routes stands in a text: `at` in logs.',
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
				description: 'It is served; with `dry_run`, what would happen.',
				type: 'application/json',
				schema: { anyOf: [OUTCOME, PREVIEW] },
			},
			errors: CHANGE_ERRORS,
			run: loadWhole,
		},
	},
};

async function loadWhole(x: Exchange, cx: AdminContext): Promise<void> {
	const { runtime, confirmation } = cx;
	const query = new URLSearchParams(x.request.query);
	const terms = termsOf(query);
	const format = formatOf(x, 'json');
	const input = {
		format,
		text: await readText(x),
		name: '<request>',
		remote: true,
		...(mediaType(x) === PLACED && { placed: true }),
	};
	const how = { force: isSet(query, 'force'), reversible: terms !== undefined };
	if (isSet(query, 'dry_run')) {
		answerJson(x, 200, JSON.stringify(await runtime.preview(input, how)));
		return;
	}
	cx.changeable();
	const outcome = await cx.changed(x, await runtime.load(input, how), terms !== undefined);
	if (terms && outcome.result === 'applied' && !outcome.unchanged) {
		confirmation.await(outcome.generation, outcome.replaced!, terms);
		answerOutcome(x, outcome, { confirm: confirmation.pending });
	} else answerOutcome(x, outcome);
}

export const confirmLoad: AdminEndpoint = {
	path: '/load/confirm',
	methods: {
		POST: {
			summary: 'Keeps the load that waits for its confirmation.',
			answer: {
				description: 'It stays.',
				type: 'application/json',
				schema: {
					type: 'object',
					properties: { generation: { type: 'integer' }, diagnostics: DIAGNOSTICS },
					required: ['generation', 'diagnostics'],
				},
			},
			errors: ['nothing_to_confirm', 'unsupported_media_type'],
			run: async (x, cx) => {
				refuseForms(x);
				const generation = cx.confirmation.confirm();
				if (generation === undefined) throw nothingWaits();
				answerJson(x, 200, JSON.stringify({ generation, diagnostics: await cx.confirmed() }));
			},
		},
	},
};

export const revertLoad: AdminEndpoint = {
	path: '/load/revert',
	methods: {
		POST: {
			summary: 'Goes back to what was served before the load that waits for its confirmation.',
			answer: { description: 'It is served again.', type: 'application/json', schema: OUTCOME },
			errors: ['nothing_to_confirm', 'load_failed', 'invalid_config', 'restart_required', 'unsupported_media_type'],
			run: async (x, cx) => {
				refuseForms(x);
				const outcome = await cx.confirmation.revert('it was asked for');
				if (outcome === undefined) throw nothingWaits();
				answerOutcome(x, await cx.changed(x, outcome));
			},
		},
	},
};

function nothingWaits(): AdminError {
	return new AdminError(404, 'nothing_to_confirm', 'No load waits for a confirmation.');
}

/** `?name`, `?name=1` and `?name=true` are yes. */
function isSet(query: URLSearchParams, name: string): boolean {
	const value = query.get(name);
	if (value === null || value === '0' || value === 'false') return false;
	if (value === '' || value === '1' || value === 'true') return true;
	throw new AdminError(400, 'bad_request', `\`${name}\` is true or false.`);
}

function termsOf(query: URLSearchParams): ConfirmationTerms | undefined {
	const text = query.get('confirm');
	const rate = query.get('max_error_rate');
	if (text === null) {
		if (rate === null) return undefined;
		throw new AdminError(400, 'bad_request', '`max_error_rate` needs `confirm`.');
	}
	const within = parseDuration(text);
	if (within === undefined || within < 1000 || within > LONGEST_CONFIRMATION) {
		throw new AdminError(400, 'bad_request', '`confirm` is a duration from 1s to 1h.');
	}
	const maxErrorRate = rate === null ? undefined : Number(rate);
	if (maxErrorRate !== undefined && !(maxErrorRate >= 0 && maxErrorRate <= 1 && rate!.trim() !== '')) {
		throw new AdminError(400, 'bad_request', '`max_error_rate` is a number from 0 to 1.');
	}
	return { within, maxErrorRate };
}
