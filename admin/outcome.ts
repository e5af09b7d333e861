/** The answers that the endpoints for changing the configuration have in common. */
import { match } from 'ts-pattern';
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import type { EditRefused, RestartReason } from '../runtime/compile/load-results.ts';
import type { LoadOutcome } from '../runtime/main/control.ts';
import type { HandoverResult } from '../runtime/main/handover/successor-process.ts';
import { answerJson, type JsonSchema } from './endpoint.ts';
import { AdminError, type AdminErrorCode, refusalMessage } from './errors.ts';

export const DIAGNOSTICS_SCHEMA: JsonSchema = { type: 'array', items: { $ref: '#/components/schemas/Diagnostic' } };

/** JSON Schema of the body that {@link answerOutcome} sends. */
export const OUTCOME_SCHEMA: JsonSchema = {
	type: 'object',
	properties: {
		generation: { type: 'integer', minimum: 0, description: 'Number of the generation being served.' },
		unchanged: { const: true, description: 'The configuration equals the running one.' },
		diagnostics: DIAGNOSTICS_SCHEMA,
		handover: {
			type: 'object',
			description: 'The process that has taken over; this one ends once its connections have.',
			properties: { pid: { type: 'integer' } },
			required: ['pid'],
		},
		confirm: {
			type: 'object',
			description: 'What is rolled back unless it is confirmed.',
			properties: {
				generation: { type: 'integer' },
				until: { type: 'number', description: 'Deadline, in milliseconds since 1970.' },
			},
			required: ['generation', 'until'],
		},
	},
	required: ['generation', 'diagnostics'],
	additionalProperties: false,
};

/** Errors with which a change of the configuration can be refused. */
export const CHANGE_ERROR_CODES = [
	...(['bad_request', 'invalid_config', 'restart_required', 'load_failed', 'confirmation_pending'] as const),
	...(['configured_by_cluster', 'irreversible', 'body_too_large', 'unsupported_media_type'] as const),
];

/**
 * Answers 200 `{"generation":N,"diagnostics":[warnings]}`, with `"unchanged":true` for a change without effect, and with
 * `extraFields`. Throws AdminError for a change that was not made: 400 `invalid_config`, 409 `restart_required` and `irreversible`,
 * 503 `load_failed`.
 */
export function answerOutcome(
	x: Exchange,
	outcome: LoadOutcome,
	extraFields: { readonly [name: string]: unknown } = {},
): void {
	match(outcome)
		.with({ result: 'applied' }, ({ generation, unchanged, diagnostics }) =>
			answerJson(
				x,
				200,
				JSON.stringify({ generation, ...(unchanged ? { unchanged } : {}), diagnostics, ...extraFields }),
			),
		)
		.with({ result: 'refused' }, ({ diagnostics }) => {
			throw new AdminError(400, 'invalid_config', refusalMessage(diagnostics), { diagnostics });
		})
		.with({ result: 'restart_required' }, ({ diagnostics, reasons }) => {
			const reasonText = reasons.map(reason => reason.message).join(' ');
			throw new AdminError(409, 'restart_required', `A restart is needed. ${reasonText}`.trim(), {
				diagnostics,
				reasons,
			});
		})
		.with({ result: 'irreversible' }, ({ diagnostics, reasons }) => {
			const cause = reasons.length > 0 ? reasons.map(reason => reason.message).join(' ') : refusalMessage(diagnostics);
			throw irreversibleError(cause, { diagnostics, reasons });
		})
		.with({ result: 'failed' }, ({ message }) => {
			throw new AdminError(503, 'load_failed', message);
		})
		.exhaustive();
}

/** Returns the error for a change that could not be rolled back. `why` is a sentence. */
export function irreversibleError(
	why: string,
	details: { readonly diagnostics: readonly DiagnosticReport[]; readonly reasons: readonly RestartReason[] },
): AdminError {
	const message = `Nothing was applied, because this load could not be rolled back: ${why} To apply it anyway, load it without \`confirm\`.`;
	return new AdminError(409, 'irreversible', message, details);
}

const EDIT_ERRORS: { readonly [reason in EditRefused['reason']]: readonly [status: number, code: AdminErrorCode] } = {
	missing: [404, 'path_not_found'],
	exists: [409, 'already_exists'],
	value: [400, 'bad_value'],
	changed: [412, 'precondition_failed'],
};

/** Returns the error for an edit that cannot be made in the running document, such as one at a path that does not exist. */
export function editError({ reason, message, nearest }: EditRefused): AdminError {
	const [status, code] = EDIT_ERRORS[reason];
	return new AdminError(status, code, message, reason === 'missing' ? { nearest } : {});
}

/** Answers a request whose change was made by a handover, with status 200. */
export function answerHandover(
	x: Exchange,
	handover: Omit<Extract<HandoverResult, { result: 'done' }>, 'result'>,
): void {
	const { generation, pid, warnings, unconfirmed } = handover;
	const confirm = unconfirmed && { generation, until: unconfirmed.until };
	answerJson(x, 200, JSON.stringify({ generation, handover: { pid }, diagnostics: warnings, confirm }));
}
