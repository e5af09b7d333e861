/**
 * The errors of the Admin API. They all have this form:
 *
 *     {"error":{"code":"restart_required","message":"…","diagnostics":[…]}}
 *
 * `code` is stable and for tools, `message` is one sentence for people, `diagnostics` come from the compiler (often empty).
 * A 409 `restart_required` or `irreversible` also has `reasons`, a 404 `path_not_found` has `nearest`. A 503 `handover_failed` may
 * have `output`: the last lines that the new program wrote to standard error. Only lines from before this server sent it the
 * configuration and keys are included, so they contain neither. Otherwise, errors never contain a stack trace, a path of the
 * machine or a secret.
 */
import type { DiagnosticReport } from '../compiler/diagnostics/diagnostic.ts';
import type { RestartReason } from '../runtime/compile/load-results.ts';

/** Every error code of the Admin API, with its status and meaning. */
export const ADMIN_ERRORS = {
	unauthorized: { status: 401, description: 'The token is missing or wrong.' },
	client_not_allowed: {
		status: 403,
		description: "No token is configured, and the client's address is not a loopback address.",
	},
	host_not_allowed: { status: 403, description: 'The Host field is not a name of this API (DNS rebinding).' },
	origin_not_allowed: {
		status: 403,
		description: 'The origin is not allowed, or is missing although `enforce_origin` is set.',
	},
	not_found: { status: 404, description: 'No such endpoint.' },
	method_not_allowed: {
		status: 405,
		description: 'The endpoint does not support this method; `Allow` lists those it does.',
	},
	bad_request: {
		status: 400,
		description: 'The path is not valid percent-encoding, or the body is not UTF-8 or is incomplete.',
	},
	body_too_large: { status: 413, description: 'The body is larger than 64 MiB.' },
	unsupported_media_type: { status: 415, description: 'The endpoint does not accept this media type.' },
	invalid_config: { status: 400, description: 'The configuration does not compile; `diagnostics` say why.' },
	restart_required: { status: 409, description: 'The change needs a restart; `reasons` say why.' },
	irreversible: {
		status: 409,
		description: 'The load asks for a confirmation, but could not be rolled back; `reasons` or `diagnostics` say why.',
	},
	path_not_found: {
		status: 404,
		description: 'The path to write to does not exist; `nearest` is the nearest parent that does.',
	},
	already_exists: { status: 409, description: 'PUT to a path that already has a value.' },
	bad_value: { status: 400, description: 'The value does not fit the path.' },
	precondition_failed: { status: 412, description: '`If-Match` no longer holds.' },
	confirmation_pending: { status: 409, description: 'Another load awaits its confirmation.' },
	configured_by_cluster: {
		status: 409,
		description:
			'The machine was started with `--cluster`: its configuration comes from the cluster, and only `svc publish` changes it.',
	},
	nothing_to_confirm: { status: 404, description: 'There is no load to confirm or roll back.' },
	load_failed: { status: 503, description: 'The configuration is valid, but the worker threads could not apply it.' },
	handover_failed: {
		status: 503,
		description: 'The new process did not take over; this one serves on as before, and `message` says why.',
	},
	purge_not_kept: {
		status: 503,
		description:
			'The responses were purged from memory, but a cache disk could not record it: they may reappear after a restart.',
	},
	purge_not_shared: {
		status: 503,
		description:
			'The responses were purged on this machine only, because Redis is unavailable. It tells the other machines as soon as Redis is available, unless it ends before.',
	},
	no_rollout: { status: 404, description: 'Nothing has been published in the cluster.' },
	cluster_unavailable: {
		status: 503,
		description: 'Redis does not answer, or what it holds cannot be decrypted.',
	},
	no_cluster: { status: 404, description: 'The configuration has no option `cluster`.' },
	not_ready: {
		status: 503,
		description: 'Not every listener is bound, a thread does not respond, or a stop has begun.',
	},
	internal: { status: 500, description: 'An internal error.' },
} as const;

export type AdminErrorCode = keyof typeof ADMIN_ERRORS;

/** An error response, thrown by endpoints and checks. */
export class AdminError extends Error {
	readonly status: number;
	readonly code: AdminErrorCode;
	/** Response fields that go with the status: `Allow`, `WWW-Authenticate`. */
	readonly headers: readonly (readonly [name: string, value: string])[];
	readonly diagnostics: readonly DiagnosticReport[];
	readonly reasons: readonly RestartReason[] | undefined;
	/** For a write to a path that does not exist: JSON pointer of the nearest parent that does. */
	readonly nearest: string | undefined;
	/** The last lines of output of a program that failed to take over. */
	readonly output: string | undefined;

	constructor(
		status: number,
		code: AdminErrorCode,
		message: string,
		details: {
			headers?: readonly (readonly [name: string, value: string])[];
			diagnostics?: readonly DiagnosticReport[];
			reasons?: readonly RestartReason[];
			nearest?: string;
			output?: string | undefined;
		} = {},
	) {
		super(message);
		this.name = 'AdminError';
		this.status = status;
		this.code = code;
		this.headers = details.headers ?? [];
		this.diagnostics = details.diagnostics ?? [];
		this.reasons = details.reasons;
		this.nearest = details.nearest;
		this.output = details.output;
	}

	/** Returns the response body. */
	toJSON(): { error: { code: string; message: string; diagnostics: readonly DiagnosticReport[] } } {
		return {
			error: {
				code: this.code,
				message: this.message,
				diagnostics: this.diagnostics,
				...(this.reasons === undefined ? {} : { reasons: this.reasons }),
				...(this.nearest === undefined ? {} : { nearest: this.nearest }),
				...(this.output === undefined ? {} : { output: this.output }),
			},
		};
	}
}

/** Returns the message for a refused configuration: its first error, and the number of others. */
export function refusalMessage(diagnostics: readonly DiagnosticReport[]): string {
	const errors = diagnostics.filter(diagnostic => diagnostic.severity === 'error');
	const firstError = errors[0];
	if (firstError === undefined) return 'The configuration is refused.';
	const place =
		firstError.file === undefined ? '' : `${firstError.file}:${firstError.line ?? 1}:${firstError.column ?? 1}: `;
	const suffix = errors.length === 1 ? '' : ` (and ${errors.length - 1} more)`;
	return `${place}${firstError.message}${suffix}`;
}
