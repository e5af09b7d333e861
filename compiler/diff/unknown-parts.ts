/**
 * Which parts of an outcome nobody can know without the network, the files or the process of a server. A dry run makes assumptions in
 * their place; these must not be shown as if a server answered so.
 */
import { FILES_NOT_READ } from '../codegen/context/fake-leases.ts';
import type { DryRunResult } from '../dry-run/dry-run.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';

/** Statuses of responses that have no body. */
const BODILESS_STATUSES: ReadonlySet<number> = new Set([204, 205, 304]);

/** Why an answer depends on a file that was not read, as a value to show; undefined if it does not. */
export function unreadFileText({ exchange, failure }: DryRunResult): string | undefined {
	for (const thrown of [failure, exchange.error?.cause]) {
		for (let error = thrown; error instanceof Error; error = error.cause) {
			if (error === FILES_NOT_READ) return unknownText('files are not read');
		}
	}
	return undefined;
}

/**
 * Returns what to show in place of a body that only an upstream or a running server knows; undefined if the body is known. `shownBody`
 * is the body under the assumption, and `assumedBody` the one that upstreams are assumed to send, both as JSON text.
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
