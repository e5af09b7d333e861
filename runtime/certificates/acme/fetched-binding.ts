/** Fetches the external account binding that ZeroSSL provides to anyone with an email address. */
import type { Store } from '../../storage/store.ts';
import { IssueError } from '../issuer.ts';
import type { AccountSettings } from './acme-account.ts';

/** Host of ZeroSSL's ACME server. */
const ZEROSSL_HOST = 'acme.zerossl.com';
/** URL from which bindings are fetched. */
const BINDING_ENDPOINT = 'https://api.zerossl.com/acme/eab-credentials-email';
/** Timeout of the request in milliseconds. */
const FETCH_TIMEOUT_MS = 30_000;

/** Returns the binding for a directory; undefined if none is needed or available. Rejects with IssueError or StoreError. */
export async function fetchBinding(
	directory: string,
	email: string | undefined,
	store: Store,
	serverSegment: string,
): Promise<AccountSettings['eab']> {
	if (email === undefined || new URL(directory).host !== ZEROSSL_HOST) return undefined;
	const storeKey = `acme/${serverSegment}/bindings/${Buffer.from(email).toString('hex').slice(0, 200)}.json`;
	const storedBinding = await store.read(storeKey);
	if (storedBinding) return JSON.parse(storedBinding.toString('utf8')) as AccountSettings['eab'];
	let answer: { readonly eab_kid?: unknown; readonly eab_hmac_key?: unknown };
	try {
		const response = await fetch(BINDING_ENDPOINT, {
			method: 'POST',
			body: new URLSearchParams({ email }),
			redirect: 'error',
			signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
		});
		answer = (await response.json()) as typeof answer;
	} catch (error) {
		const { cause, name } = error as Error & { cause?: { code?: string } };
		throw new IssueError('issuer/unreachable', `No account binding could be fetched: ${cause?.code ?? name}.`);
	}
	const { eab_kid: keyId, eab_hmac_key: macKey } = answer;
	if (typeof keyId !== 'string' || typeof macKey !== 'string') {
		throw new IssueError('issuer/refused', 'The authority did not return an account binding for the email address.');
	}
	const binding = { key_id: keyId, mac_key: macKey };
	await store.write(storeKey, JSON.stringify(binding));
	return binding;
}
