/** What became of a change, as the answer of every endpoint that makes one. */
import type { Exchange } from '../compiler/exchange/exchange.ts';
import type { EditRefused, LoadOutcome } from '../runtime/control.ts';
import { type AnswerSchema, answerJson } from './endpoint.ts';
import { AdminError, type AdminErrorCode, refusalMessage } from './errors.ts';

/** Schema of what the compiler says. */
export const DIAGNOSTICS: AnswerSchema = { type: 'array', items: { $ref: '#/components/schemas/Diagnostic' } };

/** Schema of {@link answerOutcome}. */
export const OUTCOME: AnswerSchema = {
	type: 'object',
	properties: {
		generation: { type: 'integer', minimum: 0, description: 'Number of the generation that is served.' },
		unchanged: { const: true, description: 'It is what was being served already.' },
		diagnostics: DIAGNOSTICS,
		confirm: {
			type: 'object',
			description: 'What is taken back unless it is confirmed.',
			properties: {
				generation: { type: 'integer' },
				until: { type: 'number', description: 'Milliseconds since 1970.' },
			},
			required: ['generation', 'until'],
		},
	},
	required: ['generation', 'diagnostics'],
	additionalProperties: false,
};

/** Errors that answer a change. */
export const CHANGE_ERRORS = [
	...(['bad_request', 'invalid_config', 'restart_required', 'load_failed', 'confirmation_pending'] as const),
	...(['body_too_large', 'unsupported_media_type'] as const),
];

/**
 * Answers 200 `{"generation":N,"diagnostics":[warnings]}`, with `"unchanged":true` when it is what was being served, and
 * `more`. Throws AdminError for a change that was not made: 400 `invalid_config`, 409 `restart_required`, 503 `load_failed`.
 */
export function answerOutcome(
	x: Exchange,
	outcome: LoadOutcome,
	more: { readonly [name: string]: unknown } = {},
): void {
	switch (outcome.result) {
		case 'applied': {
			const { generation, unchanged, diagnostics } = outcome;
			answerJson(x, 200, JSON.stringify({ generation, ...(unchanged ? { unchanged } : {}), diagnostics, ...more }));
			return;
		}
		case 'refused': {
			const { diagnostics } = outcome;
			throw new AdminError(400, 'invalid_config', refusalMessage(diagnostics), { diagnostics });
		}
		case 'restart_required': {
			const { diagnostics, reasons } = outcome;
			const what = reasons.map(reason => reason.message).join(' ');
			throw new AdminError(409, 'restart_required', `A restart is needed. ${what}`.trim(), { diagnostics, reasons });
		}
		case 'failed':
			throw new AdminError(503, 'load_failed', outcome.message);
	}
}

const EDIT_ERRORS: { readonly [reason in EditRefused['reason']]: readonly [status: number, code: AdminErrorCode] } = {
	missing: [404, 'path_not_found'],
	exists: [409, 'already_exists'],
	value: [400, 'bad_value'],
	changed: [412, 'precondition_failed'],
};

/** The error for a change that does not fit the running document. */
export function editError({ reason, message, nearest }: EditRefused): AdminError {
	const [status, code] = EDIT_ERRORS[reason];
	return new AdminError(status, code, message, reason === 'missing' ? { nearest } : {});
}
