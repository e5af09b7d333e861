/** Requests to the APIs of DNS providers, with limits, and errors that contain no credentials. */
import { IssueError } from '../issuer.ts';

/** Timeout of a request in milliseconds. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Maximum size of a response in bytes. */
const MAX_ANSWER_BYTES: number = 4 * 1024 * 1024;

export interface ApiRequest {
	readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
	readonly url: string;
	readonly headers: { readonly [name: string]: string };
	readonly body?: string | undefined;
	/** Name of the provider, for error messages. */
	readonly provider: string;
	/**
	 * Extracts the error message from the text of a response with a status of 400 or more. Only the beginning of a long message is
	 * used.
	 */
	readonly explain?: (text: string) => string | undefined;
	readonly signal?: AbortSignal | undefined;
}

/** Sends a request and returns the text of the response. Rejects with IssueError or the signal's reason. */
export async function fetchApiText(request: ApiRequest): Promise<string> {
	const { method, url, headers, body, provider, signal } = request;
	let response: Response;
	let text: string;
	try {
		response = await fetch(url, {
			method,
			headers,
			redirect: 'error',
			...(body === undefined ? {} : { body }),
			signal: AbortSignal.any([AbortSignal.timeout(REQUEST_TIMEOUT_MS), ...(signal ? [signal] : [])]),
		});
		text = await readLimitedText(response, provider);
	} catch (error) {
		if (error instanceof IssueError) throw error;
		if (signal?.aborted) throw signal.reason;
		const { cause, name } = error as Error & { cause?: { code?: string } };
		const reason = cause?.code ?? (name === 'TimeoutError' ? 'the request timed out' : name);
		throw new IssueError('dns/unreachable', `The API of ${provider} cannot be reached: ${reason}.`);
	}
	if (response.ok) return text;
	const explanation = request.explain?.(text)?.slice(0, 300);
	throw new IssueError(
		'dns/refused',
		`The API of ${provider} answered with status ${response.status} to ${method} ${new URL(url).pathname}${explanation ? `: ${explanation}` : ''}.`,
	);
}

/** Sends a request like {@link fetchApiText}, and returns the response as a JSON object. */
export async function fetchApiJson(request: ApiRequest): Promise<{ readonly [member: string]: unknown }> {
	const text = await fetchApiText(request);
	if (text === '') return {};
	try {
		const value: unknown = JSON.parse(text);
		if (typeof value === 'object' && value !== null) return value as { [member: string]: unknown };
	} catch {
		// Invalid JSON is reported by the `throw` below.
	}
	throw new IssueError('dns/refused', `The API of ${request.provider} did not return a JSON object.`);
}

async function readLimitedText(response: Response, provider: string): Promise<string> {
	const decoder = new TextDecoder();
	let text = '';
	for await (const chunk of response.body ?? []) {
		text += decoder.decode(chunk, { stream: true });
		if (text.length > MAX_ANSWER_BYTES) {
			throw new IssueError('dns/refused', `The API of ${provider} returned too large a response.`);
		}
	}
	return text;
}
