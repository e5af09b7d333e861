/**
 * The one shape of an error of the Admin API:
 *
 *     {"error":{"code":"restart_required","message":"…","diagnostics":[…]}}
 *
 * `code` is stable and for tools, `message` one sentence for people, `diagnostics` what the compiler found (often empty).
 * A 409 `restart_required` or `irreversible` also has `reasons`, a 404 `path_not_found` has `nearest`. No error carries a stack, a path of the machine or a secret.
 */
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import type { RestartReason } from '../runtime/main/control.ts';

/** Every code that an error of the Admin API can have, with its status and when it comes. */
export const ADMIN_ERRORS = {
	unauthorized: { status: 401, description: 'No token, or a wrong one.' },
	client_not_allowed: { status: 403, description: 'There is no token and the client is not on this machine.' },
	host_not_allowed: { status: 403, description: 'The Host field is not a name of this API (DNS rebinding).' },
	origin_not_allowed: { status: 403, description: 'The browser origin may not call, or names none and must.' },
	not_found: { status: 404, description: 'No such endpoint.' },
	method_not_allowed: { status: 405, description: 'Not with this method; `Allow` lists those that are.' },
	bad_request: {
		status: 400,
		description: 'A path that is not valid percent-encoding, or a body that is not UTF-8 or was cut short.',
	},
	body_too_large: { status: 413, description: 'The body is larger than 64 MiB.' },
	unsupported_media_type: { status: 415, description: 'A media type that the endpoint does not take.' },
	invalid_config: { status: 400, description: 'The configuration does not compile; `diagnostics` say why.' },
	restart_required: { status: 409, description: 'The change needs a restart; `reasons` say why.' },
	irreversible: {
		status: 409,
		description: 'A load that asks for a confirmation could not be rolled back; `reasons` or `diagnostics` say why.',
	},
	path_not_found: {
		status: 404,
		description: 'A write to a path that does not exist; `nearest` points at the nearest parent that does.',
	},
	already_exists: { status: 409, description: 'PUT of what exists already.' },
	bad_value: { status: 400, description: 'The value does not fit the path.' },
	precondition_failed: { status: 412, description: '`If-Match` does not hold any more.' },
	confirmation_pending: { status: 409, description: 'A load waits for its confirmation.' },
	nothing_to_confirm: { status: 404, description: 'There is no load to confirm or to take back.' },
	load_failed: { status: 503, description: 'The configuration is valid, but the threads could not take it over.' },
	purge_not_kept: {
		status: 503,
		description:
			'It is purged from memory, but the disk of a cache could not be told: it may come back after a restart.',
	},
	not_ready: {
		status: 503,
		description: 'Not every listener is bound, a thread does not answer, or a stop has begun.',
	},
	internal: { status: 500, description: 'A defect of the server.' },
} as const;

/** A code of {@link ADMIN_ERRORS}. */
export type AdminErrorCode = keyof typeof ADMIN_ERRORS;

/** A refusal with its status and code, thrown by endpoints and checks. */
export class AdminError extends Error {
	readonly status: number;
	readonly code: AdminErrorCode;
	/** Fields that belong to the status: `Allow`, `WWW-Authenticate`. */
	readonly headers: readonly (readonly [name: string, value: string])[];
	readonly diagnostics: readonly DiagnosticReport[];
	readonly reasons: readonly RestartReason[] | undefined;
	/** JSON pointer of the nearest parent that exists, of a write to a path that does not. */
	readonly nearest: string | undefined;

	constructor(
		status: number,
		code: AdminErrorCode,
		message: string,
		more: {
			headers?: readonly (readonly [name: string, value: string])[];
			diagnostics?: readonly DiagnosticReport[];
			reasons?: readonly RestartReason[];
			nearest?: string;
		} = {},
	) {
		super(message);
		this.name = 'AdminError';
		this.status = status;
		this.code = code;
		this.headers = more.headers ?? [];
		this.diagnostics = more.diagnostics ?? [];
		this.reasons = more.reasons;
		this.nearest = more.nearest;
	}

	/** The body of the answer. */
	toJSON(): { error: { code: string; message: string; diagnostics: readonly DiagnosticReport[] } } {
		return {
			error: {
				code: this.code,
				message: this.message,
				diagnostics: this.diagnostics,
				...(this.reasons === undefined ? {} : { reasons: this.reasons }),
				...(this.nearest === undefined ? {} : { nearest: this.nearest }),
			},
		};
	}
}

/** The sentence for a configuration that was refused: its first error, and how many there are. */
export function refusalMessage(diagnostics: readonly DiagnosticReport[]): string {
	const errors = diagnostics.filter(one => one.severity === 'error');
	const first = errors[0];
	if (first === undefined) return 'The configuration is refused.';
	const place = first.file === undefined ? '' : `${first.file}:${first.line ?? 1}:${first.column ?? 1}: `;
	const more = errors.length === 1 ? '' : ` (and ${errors.length - 1} more)`;
	return `${place}${first.message}${more}`;
}
