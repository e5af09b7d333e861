/**
 * Determines which parts of an outcome are unknown, because they depend on the network, the files or the process of a server. A
 * dry run replaces them with assumptions, which must not be shown as if a server would answer with them.
 */
import { FILES_NOT_READ } from '../codegen/context/fake-leases.ts';
import type { DryRunResult } from '../dry-run/dry-run.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';

/** Statuses of responses that have no body. */
const BODILESS_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

/** Returns the text to show if an answer depends on a file that was not read; undefined if it does not. */
export function unreadFileText({ exchange, failure }: DryRunResult): string | undefined {
	for (const thrown of [failure, exchange.error?.cause]) {
		for (let error = thrown; error instanceof Error; error = error.cause) {
			if (error === FILES_NOT_READ) return unknownText('files are not read');
		}
	}
	return undefined;
}

/**
 * Returns the text to show for a body that only an upstream or a running server knows; undefined if the body is known.
 * `assumedBody` is the body that upstreams are assumed to send, and `shownBody` the body that the client then gets, both as JSON
 * text.
 */
export function unknownBodyText(result: DryRunResult, shownBody: string, assumedBody: string): string | undefined {
	const { exchange: x, response, failure } = result;
	if (!response || failure !== undefined || x.received.method === 'HEAD' || BODILESS_STATUSES.has(response.status))
		return undefined;
	const traits = HANDLERS.get(x.answeredBy);
	if (traits?.measuresBody) return unknownText('measured by the running server');
	if (!traits?.upstreamAddressesOf || x.upstreamRequests.length === 0) return undefined;
	if (shownBody === assumedBody || shownBody === JSON.stringify('')) return unknownText('sent by the upstream');
	return unknownText(`sent by the upstream; ${assumedBody} would become ${shownBody}`);
}

function unknownText(reason: string): string {
	return `unknown (${reason})`;
}
