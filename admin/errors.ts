/**
 * The one shape of an error of the Admin API:
 *
 *     {"error":{"code":"restart_required","message":"…","diagnostics":[…]}}
 *
 * `code` is stable and for tools, `message` one sentence for people, `diagnostics` what the compiler found (often empty).
 * A 409 `restart_required` also has `reasons`, a 404 `path_not_found` has `nearest`. No error carries a stack, a path of the machine or a secret.
 */
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import type { RestartReason } from '../runtime/control.ts';

/** Every code that an error of the Admin API can have. */
export type AdminErrorCode =
	/** 401: no token, or a wrong one. */
	| 'unauthorized'
	/** 403: there is no token and the client is not on this machine. */
	| 'client_not_allowed'
	/** 403: the Host field is not a name of this API (DNS rebinding). */
	| 'host_not_allowed'
	/** 403: the browser origin may not call, or names none and must. */
	| 'origin_not_allowed'
	/** 404: no such endpoint. */
	| 'not_found'
	/** 405: not with this method; `Allow` lists those that are. */
	| 'method_not_allowed'
	/** 400: a path that is not valid percent-encoding, or a body that is not UTF-8 or was cut short. */
	| 'bad_request'
	/** 413: the body is larger than 64 MiB. */
	| 'body_too_large'
	/** 415: a media type that the endpoint does not take. */
	| 'unsupported_media_type'
	/** 400: the configuration does not compile; `diagnostics` say why. */
	| 'invalid_config'
	/** 409: the change needs a restart; `reasons` say why. */
	| 'restart_required'
	/** 404: a write to a path that does not exist; `nearest` points at the nearest parent that does. */
	| 'path_not_found'
	/** 409: PUT of what exists already. */
	| 'already_exists'
	/** 400: the value does not fit the path. */
	| 'bad_value'
	/** 412: `If-Match` does not hold any more. */
	| 'precondition_failed'
	/** 409: a load waits for its confirmation. */
	| 'confirmation_pending'
	/** 404: there is no load to confirm or to take back. */
	| 'nothing_to_confirm'
	/** 503: the configuration is valid, but the threads could not take it over. */
	| 'load_failed'
	/** 503: not every listener is bound, or a stop has begun. */
	| 'not_ready'
	/** 500: a defect of the server. */
	| 'internal';

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
