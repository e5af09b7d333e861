/** One certificate's OCSP response: from the store while it is fresh, else from the responder. */
import { X509Certificate } from 'node:crypto';
import { StoreError } from '../storage/store.ts';
import type { LabelledCounter } from './certificate-metrics.ts';
import { type CertificateStatus, readStatus, responderOf, StatusError, statusRequest } from './ocsp-message.ts';
import { type StapledCertificate, type StaplerSurroundings, statusKey } from './status-stapler.ts';

/** Milliseconds that a responder may take, and bytes of its answer at most. */
const LIMIT = 15_000;
const LARGEST_RESPONSE: number = 64 * 1024;
/** Milliseconds before the second attempt where there is no response at all; each further one waits twice as long. */
const RETRY = 60_000;

/** Has an entry staple a fresh response. Rejects for bugs only; the entry keeps what it has while that can be believed. */
export async function refreshStatus<Certificate extends StapledCertificate>(
	entry: Certificate,
	around: StaplerSurroundings<Certificate>,
	fetched: LabelledCounter,
): Promise<void> {
	const { record } = entry;
	if (!record || entry.gone) return;
	const [leaf, issuer] = certificatesOf(record.chain);
	const responder = leaf && responderOf(leaf);
	if (!leaf || !issuer || responder === undefined) {
		entry.statusAt = Number.POSITIVE_INFINITY;
		if (leaf && responder !== undefined) {
			const cause = 'The certificate of its issuer is not in the chain.';
			around.log('warn', 'tls.ocsp', 'no OCSP response is to be had', { name: record.name, cause });
		}
		return;
	}
	const read = (response: Uint8Array): CertificateStatus => readStatus(response, leaf, issuer, around.now());
	const key = statusKey(record);
	const store = await around.store();
	const stored = await store.read(key).catch(() => undefined);
	const kept = stored && usable(stored, read);
	if (stored && kept && around.now() < middle(kept)) {
		take(entry, record, stored, kept, around);
		return;
	}
	try {
		const response = await fetchStatus(responder, statusRequest(leaf, issuer));
		const status = read(response);
		fetched.count({ result: status.status });
		if (status.status === 'revoked') {
			const next = entry.record === record ? entry.revoked() : 'it is not served any more';
			around.log('error', 'tls.ocsp', `the issuer has revoked a certificate; ${next}`, { name: record.name });
			return;
		}
		if (status.status === 'unknown') throw new StatusError('The responder does not know the certificate.');
		await store.write(key, response).catch(error => {
			if (!(error instanceof StoreError)) throw error;
			const fields = { name: record.name, cause: error.message };
			around.log('warn', 'tls.ocsp', 'an OCSP response is not kept in the store', fields);
		});
		take(entry, record, response, status, around);
	} catch (error) {
		if (!(error instanceof StatusError)) throw error;
		fetched.count({ result: 'failed' });
		const cause = error.message;
		around.log('warn', 'tls.ocsp', 'no OCSP response is to be had', { name: record.name, cause });
		// A response past the middle of its life is still one.
		if (stored && kept) take(entry, record, stored, { ...kept, thisUpdate: around.now() }, around);
		else if (drop(entry, record, around)) {
			const wait = RETRY * 2 ** Math.min(entry.statusFailures++, 10);
			entry.statusAt = Math.min(entry.statusAt, around.now() + wait);
		}
	}
}

/** Gives the threads a response, and has the next one fetched when half of its life is over. */
function take<Certificate extends StapledCertificate>(
	entry: Certificate,
	record: StapledCertificate['record'],
	response: Uint8Array,
	status: CertificateStatus,
	around: StaplerSurroundings<Certificate>,
): void {
	if (entry.record !== record || entry.gone) return;
	entry.statusFailures = 0;
	entry.statusAt = Math.max(Math.min(entry.statusAt, middle(status)), around.now() + 1000);
	if (entry.ocsp && Buffer.from(entry.ocsp).equals(response)) return;
	entry.ocsp = Uint8Array.from(response);
	around.publish(entry);
}

/** Takes away a response that cannot be believed any more: clients refuse it. Reports whether there is none now. */
function drop<Certificate extends StapledCertificate>(
	entry: Certificate,
	record: NonNullable<StapledCertificate['record']>,
	around: StaplerSurroundings<Certificate>,
): boolean {
	if (entry.record !== record) return false;
	if (!entry.ocsp) return true;
	const [leaf, issuer] = certificatesOf(record.chain);
	if (leaf && issuer && usable(entry.ocsp, response => readStatus(response, leaf, issuer, around.now()))) return false;
	entry.ocsp = undefined;
	around.publish(entry);
	return true;
}

function usable(
	response: Uint8Array,
	read: (response: Uint8Array) => CertificateStatus,
): CertificateStatus | undefined {
	try {
		const status = read(response);
		return status.status === 'good' ? status : undefined;
	} catch {
		return undefined;
	}
}

function middle({ thisUpdate, nextUpdate }: CertificateStatus): number {
	return (thisUpdate + nextUpdate) / 2;
}

function certificatesOf(chain: string): X509Certificate[] {
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
			signal: AbortSignal.timeout(LIMIT),
		});
		const chunks: Uint8Array[] = [];
		let size = 0;
		for await (const chunk of response.body ?? []) {
			size += chunk.length;
			if (size > LARGEST_RESPONSE) throw new StatusError('The responder answered too much.');
			chunks.push(chunk);
		}
		if (response.status === 200) return Buffer.concat(chunks);
	} catch (error) {
		if (error instanceof StatusError) throw error;
		const { cause, name } = error as Error & { cause?: { code?: string } };
		throw new StatusError(`The responder cannot be reached: ${cause?.code ?? name}.`);
	}
	throw new StatusError(`The responder answered ${response.status}.`);
}
