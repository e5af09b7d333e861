/**
 * Refreshes the OCSP response of one certificate: from the store if the response there is still fresh, otherwise from the
 * certificate's OCSP responder.
 */
import { X509Certificate } from 'node:crypto';
import { StoreError } from '../storage/store.ts';
import type { LabelledCounter } from './certificate-metrics.ts';
import { type CertificateStatus, encodeStatusRequest, parseStatus, responderOf, StatusError } from './ocsp-message.ts';
import { type StapledCertificate, type StaplerDeps, statusKey } from './status-stapler.ts';

/** Timeout of the request in milliseconds. */
const FETCH_TIMEOUT_MS = 15_000;
/** Maximum size of a response in bytes. */
const MAX_RESPONSE_BYTES: number = 64 * 1024;
/** Milliseconds until the second attempt, if there is no usable response. The interval doubles with each further attempt. */
const FIRST_RETRY_MS = 60_000;

/** Refreshes the stapled response. On failure, the certificate keeps its previous response while that is valid. Rejects only on bugs. */
export async function refreshStatus<Certificate extends StapledCertificate>(
	entry: Certificate,
	deps: StaplerDeps<Certificate>,
	fetchCounter: LabelledCounter,
): Promise<void> {
	const { record } = entry;
	if (!record || entry.isDropped) return;
	const [leaf, issuer] = parseLeafAndIssuer(record.chain);
	const responder = leaf && responderOf(leaf);
	if (!leaf || !issuer || responder === undefined) {
		entry.statusCheckAt = Number.POSITIVE_INFINITY;
		if (leaf && responder !== undefined) {
			const cause = 'The chain does not contain the certificate of the issuer.';
			deps.log('warn', 'tls.ocsp', 'OCSP response unavailable', { name: record.name, cause });
		}
		return;
	}
	const parseResponse = (response: Uint8Array): CertificateStatus => parseStatus(response, leaf, issuer, deps.now());
	const storeKey = statusKey(record);
	const store = await deps.store();
	const storedResponse = await store.read(storeKey).catch(() => undefined);
	const storedStatus = storedResponse && parseIfGood(storedResponse, parseResponse);
	if (storedResponse && storedStatus && deps.now() < middleOfLifetime(storedStatus)) {
		publishResponse(entry, record, storedResponse, storedStatus, deps);
		return;
	}
	try {
		const response = await fetchStatus(responder, encodeStatusRequest(leaf, issuer));
		const status = parseResponse(response);
		fetchCounter.count({ result: status.status });
		if (status.status === 'revoked') {
			const consequence = entry.record === record ? entry.onRevoked() : 'it is no longer served';
			deps.log('error', 'tls.ocsp', `the issuer has revoked a certificate; ${consequence}`, { name: record.name });
			return;
		}
		if (status.status === 'unknown') throw new StatusError('The responder does not know the certificate.');
		await store.write(storeKey, response).catch(error => {
			if (!(error instanceof StoreError)) throw error;
			const fields = { name: record.name, cause: error.message };
			deps.log('warn', 'tls.ocsp', 'an OCSP response could not be stored', fields);
		});
		publishResponse(entry, record, response, status, deps);
	} catch (error) {
		if (!(error instanceof StatusError)) throw error;
		fetchCounter.count({ result: 'failed' });
		const cause = error.message;
		deps.log('warn', 'tls.ocsp', 'OCSP response unavailable', { name: record.name, cause });
		// No usable response could be fetched. The stored one is past half of its lifetime, but still valid, so it is stapled.
		if (storedResponse && storedStatus)
			publishResponse(entry, record, storedResponse, { ...storedStatus, thisUpdate: deps.now() }, deps);
		else if (dropExpiredResponse(entry, record, deps)) {
			const waitMs = FIRST_RETRY_MS * 2 ** Math.min(entry.statusFailures++, 10);
			entry.statusCheckAt = Math.min(entry.statusCheckAt, deps.now() + waitMs);
		}
	}
}

/** Publishes a response, and schedules the next fetch at half of its lifetime. */
function publishResponse<Certificate extends StapledCertificate>(
	entry: Certificate,
	record: StapledCertificate['record'],
	response: Uint8Array,
	status: CertificateStatus,
	deps: StaplerDeps<Certificate>,
): void {
	if (entry.record !== record || entry.isDropped) return;
	entry.statusFailures = 0;
	entry.statusCheckAt = Math.max(Math.min(entry.statusCheckAt, middleOfLifetime(status)), deps.now() + 1000);
	if (entry.ocsp && Buffer.from(entry.ocsp).equals(response)) return;
	entry.ocsp = Uint8Array.from(response);
	deps.publish(entry);
}

/** Removes the certificate's response if it has expired, because clients would reject it. Returns true if no response is left. */
function dropExpiredResponse<Certificate extends StapledCertificate>(
	entry: Certificate,
	record: NonNullable<StapledCertificate['record']>,
	deps: StaplerDeps<Certificate>,
): boolean {
	if (entry.record !== record) return false;
	if (!entry.ocsp) return true;
	const [leaf, issuer] = parseLeafAndIssuer(record.chain);
	if (leaf && issuer && parseIfGood(entry.ocsp, response => parseStatus(response, leaf, issuer, deps.now())))
		return false;
	entry.ocsp = undefined;
	deps.publish(entry);
	return true;
}

/** Returns the parsed response; undefined if it is invalid or its status is not `good`. */
function parseIfGood(
	response: Uint8Array,
	parseResponse: (response: Uint8Array) => CertificateStatus,
): CertificateStatus | undefined {
	try {
		const status = parseResponse(response);
		return status.status === 'good' ? status : undefined;
	} catch {
		return undefined;
	}
}

function middleOfLifetime({ thisUpdate, nextUpdate }: CertificateStatus): number {
	return (thisUpdate + nextUpdate) / 2;
}

function parseLeafAndIssuer(chain: string): X509Certificate[] {
	const blocks = chain.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
	return blocks.slice(0, 2).map(block => new X509Certificate(block));
}

async function fetchStatus(responder: string, request: Buffer): Promise<Buffer> {
	let response: Response;
	try {
		response = await fetch(responder, {
			method: 'POST',
			headers: { 'content-type': 'application/ocsp-request', accept: 'application/ocsp-response' },
			body: new Uint8Array(request),
			redirect: 'error',
			signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
		});
		const chunks: Uint8Array[] = [];
		let receivedBytes = 0;
		for await (const chunk of response.body ?? []) {
			receivedBytes += chunk.length;
			if (receivedBytes > MAX_RESPONSE_BYTES) throw new StatusError('The response is too large.');
			chunks.push(chunk);
		}
		if (response.status === 200) return Buffer.concat(chunks);
	} catch (error) {
		if (error instanceof StatusError) throw error;
		const { cause, name } = error as Error & { cause?: { code?: string } };
		throw new StatusError(`The responder cannot be reached: ${cause?.code ?? name}.`);
	}
	throw new StatusError(`The responder answered with status ${response.status}.`);
}
