/**
 * `POST /upgrade` → 200 `{"generation","handover":{"pid"},"diagnostics":[]}`: a new process with the running configuration
 * has taken over every listening socket, and this one ends once its connections have ended. The body is empty, or JSON:
 * `{"binary":"/path"}` names the program of the new process. It and its folder must belong to root or to the server's
 * user, and nobody else may be able to write to them. `{"within":"30s"}` limits the time of each step of the handover. If the new
 * process fails, this one serves on: 503 `handover_failed`. `{"confirm":"30s","max_error_rate":0.05}` works as for `POST /load`.
 */
import { realpathSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { parseDuration } from '../compiler/lower/context/values.ts';
import type { AdminEndpoint, HandoverRequest } from './endpoint.ts';
import { AdminError } from './errors.ts';
import { isReadyTimeAllowed, parseConfirmationTime, parseErrorRate, refuseIrreversible } from './load.ts';
import { answerHandover, OUTCOME_SCHEMA } from './outcome.ts';
import { readText, refuseForms } from './request-text.ts';

export const upgrade: AdminEndpoint = {
	path: '/upgrade',
	operationsByMethod: {
		POST: {
			summary: 'Hands over to a new process with the running configuration.',
			body: {
				'application/json': {
					type: 'object',
					properties: {
						binary: { type: 'string', description: 'Absolute path of the new program.' },
						within: {
							type: 'string',
							description:
								'Time for each step of the new process, from 10ms to 1h; default 2m to be ready, then 30s to accept connections.',
						},
						confirm: {
							type: 'string',
							description: 'Returns to the present program unless the new one is confirmed within this time, 1s to 1h.',
						},
						max_error_rate: {
							type: 'number',
							minimum: 0,
							maximum: 1,
							description:
								'With `confirm`: also returns when more than this share of the responses has a status of 500 or more.',
						},
					},
					additionalProperties: false,
				},
			},
			answer: {
				description: 'A new process has taken over.',
				type: 'application/json',
				schema: OUTCOME_SCHEMA,
			},
			errors: [
				...(['bad_request', 'confirmation_pending', 'handover_failed', 'irreversible'] as const),
				...(['body_too_large', 'unsupported_media_type'] as const),
			],
			run: async (x, cx) => {
				refuseForms(x);
				const handoverRequest = parseUpgrade(await readText(x));
				cx.refuseWhilePending();
				if (handoverRequest.confirm) await refuseIrreversible(cx.runtime);
				answerHandover(x, await cx.handOver({ ...handoverRequest, shouldSave: false }));
			},
		},
	},
};

const BODY_KEYS: readonly string[] = ['binary', 'within', 'confirm', 'max_error_rate'];

/** Parses the body of a request. Throws AdminError. */
function parseUpgrade(bodyText: string): Pick<HandoverRequest, 'binary' | 'within' | 'confirm'> {
	if (bodyText.trim() === '') return {};
	let body: unknown;
	try {
		body = JSON.parse(bodyText);
	} catch {
		throw badRequestError('The body is not JSON.');
	}
	if (body === null || typeof body !== 'object' || Object.keys(body).some(name => !BODY_KEYS.includes(name))) {
		throw badRequestError(
			`The body must be an object with no keys other than ${BODY_KEYS.map(key => `\`${key}\``).join(', ')}.`,
		);
	}
	const { binary, within, confirm, max_error_rate } = body as { readonly [key: string]: unknown };
	if (max_error_rate !== undefined && confirm === undefined) throw badRequestError('`max_error_rate` needs `confirm`.');
	return {
		binary: binary === undefined ? undefined : resolveProgram(binary),
		within: within === undefined ? undefined : readyTimeOf(within),
		confirm:
			confirm === undefined
				? undefined
				: {
						within: parseConfirmationTime(confirm),
						maxErrorRate: max_error_rate === undefined ? undefined : parseErrorRate(max_error_rate),
					},
	};
}

function readyTimeOf(within: unknown): number {
	const milliseconds = typeof within === 'string' ? parseDuration(within) : undefined;
	if (milliseconds !== undefined && isReadyTimeAllowed(milliseconds)) return milliseconds;
	throw badRequestError('`within` must be a duration from 10ms to 1h.');
}

/** Returns the path of a program, without links. */
function resolveProgram(binary: unknown): string {
	if (typeof binary !== 'string' || !path.isAbsolute(binary))
		throw badRequestError('`binary` must be an absolute path.');
	if (!statSync(binary, { throwIfNoEntry: false })?.isFile()) throw badRequestError(`There is no program ${binary}.`);
	// The path is resolved, because others might change a link in it in the meantime.
	const program = realpathSync(binary);
	// A caller of this API must not be able to run programs that others have put in place.
	if (!isTrusted(statSync(program)) || !isTrusted(statSync(path.dirname(program)))) {
		throw badRequestError(
			`${program} and its folder must belong to root or to the server's user, and nobody else may be able to write to them.`,
		);
	}
	return program;
}

/** Reports whether only root and the server's user can change a file, or change what a folder contains. */
function isTrusted(stats: Stats): boolean {
	const { uid, mode } = stats;
	// In a sticky folder such as /tmp, only a file's owner (besides root) can replace it.
	const isProtected = (mode & 0o022) === 0 || (stats.isDirectory() && (mode & 0o1000) !== 0);
	return (uid === 0 || uid === process.getuid?.()) && isProtected;
}

function badRequestError(message: string): AdminError {
	return new AdminError(400, 'bad_request', message);
}
