/**
 * Handles requests below the path of `acme_server`: forwards them to the thread of the certificate authority and sends its response
 * to the client.
 */

import type { Step } from '../../../document/document.ts';
import { isStream } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { DEFAULT_INTERMEDIATE_LIFETIME_MS, type PkiSettings } from '../../options/pki.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		acme_authority: { settings: AcmeServerSettings; lease: AcmeAuthority };
	}
}

export const CHALLENGE_TYPES = ['http-01', 'dns-01', 'tls-alpn-01'] as const;

/** The names and addresses in `allow` or `deny`. */
export interface IdentifierRules {
	/** Domain names in lower case. `*.example.com` matches names one label below `example.com`. */
	readonly domains?: readonly string[];
	/** IP ranges in CIDR notation. */
	readonly ip_ranges?: readonly string[];
}

export interface AcmeServerSettings {
	/** ID of the authority that signs. Default: `local`. */
	readonly ca?: string;
	/** Lifetime of certificates in milliseconds. Default: {@link DEFAULT_CERTIFICATE_LIFETIME_MS}. */
	readonly lifetime?: number;
	readonly resolvers?: readonly string[];
	readonly challenges?: readonly (typeof CHALLENGE_TYPES)[number][];
	readonly allow_wildcard_names?: boolean;
	readonly allow?: IdentifierRules;
	readonly deny?: IdentifierRules;
	readonly sign_with_root?: boolean;
}

export interface AcmeServerStep extends Step, AcmeServerSettings {
	readonly handler: 'acme_authority';
}

export interface AcmeServerRequest {
	readonly method: string;
	/** Path relative to the server's own path, such as `directory` or `order/abc`. */
	readonly resource: string;
	/** URL of the server as the client sees it, without a final slash. */
	readonly base: string;
	readonly contentType: string;
	/** Request body, decoded as UTF-8. */
	readonly body: string;
}

/** The response to an {@link AcmeServerRequest}. */
export interface AcmeServerAnswer {
	readonly status: number;
	readonly headers: readonly (readonly [name: string, value: string])[];
	readonly body: string;
}

/** An ACME server, which may run on another thread. */
export interface AcmeAuthority {
	/** Answers a request. Never rejects. */
	answer(request: AcmeServerRequest): Promise<AcmeServerAnswer>;
}

/** Default lifetime of certificates in milliseconds: 12 hours. */
export const DEFAULT_CERTIFICATE_LIFETIME_MS = 43_200_000;
/** Maximum number of bytes of a request body. A certificate request with a hundred names has a few thousand bytes. */
const MAX_REQUEST_BODY_BYTES: number = 128 * 1024;

export function compileAcmeServer(step: AcmeServerStep, cx: CompileContext, next: Handler): Handler {
	const { handler: _handler, when: _when, exclusive: _exclusive, '@id': _id, ...settings } = step;
	const ca = settings.ca ?? 'local';
	checkLifetime(ca, settings.lifetime ?? DEFAULT_CERTIFICATE_LIFETIME_MS, cx);
	const authority = cx.lease('acme_authority', settings);
	const pathPrefix = `/acme/${ca}/`;
	const { stepNumber } = cx;
	return x => {
		const { request } = x;
		if (!request.path.startsWith(pathPrefix)) return next(x);
		x.markAnswered('acme_authority', stepNumber);
		return forwardRequest(x, authority, pathPrefix);
	};
}

async function forwardRequest(x: Exchange, authority: AcmeAuthority, pathPrefix: string): Promise<void> {
	const { request, response } = x;
	const { status, headers, body } = await authority.answer({
		method: request.method,
		resource: request.path.slice(pathPrefix.length),
		base: `${request.scheme}://${request.authority}${pathPrefix.slice(0, -1)}`,
		contentType: request.headers.get('content-type') ?? '',
		body: await readBody(x),
	});
	response.status = status;
	for (const [name, value] of headers) {
		if (name === 'Link') response.headers.add(name, value);
		else response.headers.set(name, value);
	}
	response.body = body === '' ? null : body;
}

async function readBody({ request: { body } }: Exchange): Promise<string> {
	if (body === null) return '';
	if (!isStream(body)) return typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
	const pieces: Buffer[] = [];
	let sizeBytes = 0;
	for (let piece = await body.pull(); piece !== null; piece = await body.pull()) {
		sizeBytes += piece.byteLength;
		if (sizeBytes > MAX_REQUEST_BODY_BYTES) {
			body.cancel();
			throw new HttpError(413, 'The request is too large for an ACME server.');
		}
		// Copied, because the bytes are valid only until the next pull.
		pieces.push(Buffer.from(piece));
	}
	return Buffer.concat(pieces, sizeBytes).toString('utf8');
}

/** Rejects a lifetime that exceeds the signer's, because a certificate that outlives its signer is invalid. */
function checkLifetime(ca: string, lifetimeMs: number, cx: CompileContext): void {
	const pki = cx.settings.pki as PkiSettings | undefined;
	const intermediateLifetimeMs = pki?.authorities?.[ca]?.intermediate_lifetime ?? DEFAULT_INTERMEDIATE_LIFETIME_MS;
	if (lifetimeMs < intermediateLifetimeMs) return;
	cx.refuse(
		`certificate lifetime (${formatHours(lifetimeMs)}) should be less than intermediate certificate lifetime (${formatHours(intermediateLifetimeMs)})`,
		'acme/lifetime',
	);
}

function formatHours(milliseconds: number): string {
	const seconds = Math.round(milliseconds / 1000);
	return `${Math.floor(seconds / 3600)}h${Math.floor((seconds % 3600) / 60)}m${seconds % 60}s`;
}
