/** Requests to the APIs of DNS providers: bounded, and with errors that name no credential. */
import { IssueError } from '../issuer.ts';

/** Milliseconds that an API may take. */
const LIMIT = 30_000;
/** Characters of an answer at most. */
const MAX_ANSWER_BYTES: number = 4 * 1024 * 1024;

/** What is sent. */
export interface ApiRequest {
	readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
	readonly url: string;
	readonly headers: { readonly [name: string]: string };
	readonly body?: string | undefined;
	/** Name of the provider, for errors. */
	readonly provider: string;
	/** Reads what went wrong out of an answer with a status of 400 or more; an API must not echo credentials, but its text is cut short all the same. */
	readonly explain?: (text: string) => string | undefined;
	readonly signal?: AbortSignal | undefined;
}

/** Sends; gives the text of the answer. Rejects with IssueError. */
export async function apiText(request: ApiRequest): Promise<string> {
	const { method, url, headers, body, provider, signal } = request;
	let response: Response;
	let text: string;
	try {
		response = await fetch(url, {
			method,
			headers,
			redirect: 'error',
			...(body === undefined ? {} : { body }),
			signal: AbortSignal.any([AbortSignal.timeout(LIMIT), ...(signal ? [signal] : [])]),
		});
		text = await limitedText(response, provider);
	} catch (error) {
		if (error instanceof IssueError) throw error;
		if (signal?.aborted) throw signal.reason;
		const { cause, name } = error as Error & { cause?: { code?: string } };
		const why = cause?.code ?? (name === 'TimeoutError' ? 'it took too long' : name);
		throw new IssueError('dns/unreachable', `The API of ${provider} cannot be reached: ${why}.`);
	}
	if (response.ok) return text;
	const explained = request.explain?.(text)?.slice(0, 300);
	throw new IssueError(
		'dns/refused',
		`The API of ${provider} answered ${response.status} to ${method} ${new URL(url).pathname}${explained ? `: ${explained}` : ''}.`,
	);
}

/** As {@link apiText}, for answers that are JSON objects. */
export async function apiJson(request: ApiRequest): Promise<{ readonly [member: string]: unknown }> {
	const text = await apiText(request);
	if (text === '') return {};
	try {
		const value: unknown = JSON.parse(text);
		if (typeof value === 'object' && value !== null) return value as { [member: string]: unknown };
	} catch {
		// Told below.
	}
	throw new IssueError('dns/refused', `The API of ${request.provider} answered with something that is no JSON object.`);
}

async function limitedText(response: Response, provider: string): Promise<string> {
	const decoder = new TextDecoder();
	let text = '';
	for await (const chunk of response.body ?? []) {
		text += decoder.decode(chunk, { stream: true });
		if (text.length > MAX_ANSWER_BYTES) {
			throw new IssueError('dns/refused', `The API of ${provider} answered too much.`);
		}
	}
	return text;
}
