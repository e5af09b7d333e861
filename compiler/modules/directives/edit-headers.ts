/**
 * The handler `edit_headers`: edits header fields of the request and the response, immediately or when the response is ready.
 */

import type { Step } from '../../document/document.ts';
import { parseAuthority } from '../../exchange/authority.ts';
import type { Exchange } from '../../exchange/exchange.ts';
import { removeFromConnection } from '../../exchange/forwarded-request.ts';
import type { Handler } from '../../exchange/handler.ts';
import type { HeaderList } from '../../exchange/header-list.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { handlerDirective } from '../contract/directive.ts';
import { compileResponseMatcher, RESPONSE_MATCHER_SCHEMA, type ResponseMatcher } from '../matchers/response-matcher.ts';
import {
	compileHeaderEdits,
	HEADER_EDITS_PROPERTIES,
	HEADER_EDITS_SCHEMA,
	type HeaderEdits,
} from '../words/header-edits.ts';

export interface ResponseEdits extends HeaderEdits {
	/** True if the edits are made after later handlers have answered, not before they run. */
	readonly deferred?: boolean;
	/** Limits the edits to matching responses; implies `deferred`. */
	readonly match?: ResponseMatcher;
}

export interface EditHeadersStep extends Step {
	readonly handler: 'edit_headers';
	readonly request?: HeaderEdits;
	readonly response?: ResponseEdits;
}

/** The handler to which `header` and `request_header` lower. */
export const editHeaders = handlerDirective<EditHeadersStep>({
	kind: 'handler',
	id: 'edit_headers',
	observedFields: 'all',
	names: { configfile: [], compatfile: [] },
	usage: '{"handler":"edit_headers","request":{…},"response":{…}}',
	summary: 'Edits header fields of the request and the response.',
	documentation: [
		'The handler to which `header` and `request_header` are lowered. Edits are made in the order clear,',
		'add, set, delete, replace. Edits of the response are made before later handlers run, which may overwrite them, or,',
		'with `deferred`, after they have answered; `default` is always deferred. Deferred edits are not made if a later handler',
		"fails. A request's `Host` is its host: setting it changes what later matchers and handlers see.",
	].join('\n'),
	matcherToken: 'optional',
	fieldEdits: { response: 'response', request: 'request' },
	writtenAs: ({ response }) => (response ? 'header' : 'request_header'),
	lower: () => undefined,
	schema: {
		properties: {
			request: { ...HEADER_EDITS_SCHEMA, description: 'Edits of the request, visible to later handlers.' },
			response: {
				type: 'object',
				description: 'Edits of the response.',
				properties: {
					...HEADER_EDITS_PROPERTIES,
					deferred: { type: 'boolean', description: 'Makes the edits after later handlers have answered.' },
					match: RESPONSE_MATCHER_SCHEMA,
				},
				additionalProperties: false,
			},
		},
	},
	compile: compileEditHeaders,
});

function compileEditHeaders(step: EditHeadersStep, cx: CompileContext, next: Handler): Handler {
	let handler = next;
	if (step.response) handler = compileResponseEdits(step.response, cx, handler);
	return step.request ? compileRequestEdits(step.request, cx, handler) : handler;
}

function compileResponseEdits(edits: ResponseEdits, cx: CompileContext, next: Handler): Handler {
	const { deferred, match, default: defaults, ...otherEdits } = edits;
	let handler = next;
	if (defaults && defaults.length > 0) handler = compileDeferredEdits({ default: defaults }, match, cx, handler);
	if (Object.keys(otherEdits).length === 0) return handler;
	if (deferred || match) return compileDeferredEdits(otherEdits, match, cx, handler);
	const applyEdits = compileHeaderEdits(otherEdits, cx);
	return x => {
		applyEdits(x, x.response.headers);
		return handler(x);
	};
}

function compileDeferredEdits(
	edits: HeaderEdits,
	match: ResponseMatcher | undefined,
	cx: CompileContext,
	next: Handler,
): Handler {
	const applyEdits = compileHeaderEdits(edits, cx);
	const matchesResponse = match && compileResponseMatcher(match, cx);
	const editIfMatching = (x: Exchange) => {
		const { status, headers } = x.response;
		if (!matchesResponse || matchesResponse(x, status || (x.error?.status ?? 0), headers)) applyEdits(x, headers);
	};
	// If no error route answers, the error is rethrown, and its response has the header fields edited here.
	const editOnError = (x: Exchange, thrown: unknown): never => {
		if (x.error !== undefined && thrown === x.error.cause) editIfMatching(x);
		throw thrown;
	};
	return x => {
		let pending: void | Promise<void>;
		try {
			pending = next(x);
		} catch (thrown) {
			return editOnError(x, thrown);
		}
		if (pending instanceof Promise) {
			return pending.then(
				() => editIfMatching(x),
				thrown => editOnError(x, thrown),
			);
		}
		editIfMatching(x);
	};
}

function compileRequestEdits(edits: HeaderEdits, cx: CompileContext, next: Handler): Handler {
	const editFields = compileHeaderEdits(edits, cx);
	const nameTemplates = [...(edits.add ?? []), ...(edits.set ?? [])].map(({ name }) => cx.template(name, 'keep'));
	const applyEdits = (x: Exchange, headers: HeaderList) => {
		editFields(x, headers);
		if (nameTemplates.length > 0)
			removeFromConnection(headers, () => nameTemplates.map(template => template.render(x).toLowerCase()));
	};
	if (!mayAffectHost(edits)) {
		return x => {
			x.keepReceivedHeaders();
			applyEdits(x, x.request.headers);
			return next(x);
		};
	}
	return x => {
		const { request } = x;
		x.keepReceivedHeaders();
		// `Host` is stored outside the list of headers; it is in the list only during the edits.
		request.headers.set('Host', request.authority);
		applyEdits(x, request.headers);
		const authority = request.headers.get('host');
		request.headers.delete('host');
		const newAuthority =
			authority === undefined || authority === request.authority ? undefined : parseAuthority(authority);
		if (newAuthority) {
			request.authority = authority!;
			request.host = newAuthority.host;
		}
		return next(x);
	};
}

/**
 * Reports whether the edits may affect `Host`. An edit whose field name contains placeholders may affect it. Removing `Host` has
 * no effect, because every request has a host.
 */
function mayAffectHost(edits: HeaderEdits): boolean {
	const mayNameHost = ({ name }: { name: string }) =>
		name.toLowerCase() === 'host' || name.includes('{') || name === '*';
	return [...(edits.add ?? []), ...(edits.set ?? []), ...(edits.replace ?? [])].some(mayNameHost);
}
