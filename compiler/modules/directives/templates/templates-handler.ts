/** The handler `render`: buffers the response of later handlers, executes it, and answers with the output. */
import { isUtf8 } from 'node:buffer';
import { type Body, isStream, UnsentBody } from '../../../exchange/body.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { restartPoint } from '../../../exchange/restart-point.ts';
import type { CompileContext } from '../../contract/compile-context.ts';
import { Suspension } from '../../templates/template-error.ts';
import { executeTextTemplate } from '../../templates/text-template.ts';
import { toPageError } from './page-functions.ts';
import { PageHost } from './page-host.ts';
import { TemplatesStepState } from './page-site.ts';
import { TEMPLATE_PAGE_VARIABLE, type TemplatePage } from './page-source.ts';
import type { RenderStep } from './templates.ts';
import { readWholeBody } from './whole-body.ts';

const DEFAULT_MEDIA_TYPES = ['text/html', 'text/plain', 'text/markdown'];

/** Maximum number of bytes of a buffered response; a longer response is an error. */
const MAX_RESPONSE_BYTES = 10 * 1024 * 1024;

export function compileTemplates(step: RenderStep, cx: CompileContext, next: Handler): Handler {
	const stepState = new TemplatesStepState(step, cx);
	const { handlers } = cx;
	// The bodies of handlers without `makesPages` are not executed, because they may contain request data, such as the target of
	// a redirect, that is not marked as data.
	const isExecutable = ({ answeredBy }: Exchange): boolean => handlers.get(answeredBy)?.makesPages === true;
	const executedTypes = (step.types ?? DEFAULT_MEDIA_TYPES).map(type => type.toLowerCase());
	const isPage = (headers: HeaderList): boolean => {
		const type = headers.get('content-type')?.toLowerCase();
		return type !== undefined && executedTypes.some(pageType => type.includes(pageType));
	};

	const executeResponse = (x: Exchange, page: TemplatePage): void | Promise<void> => {
		const { response } = x;
		if (page.isExecuted || x.isAborted || x.upgradeCallback || !isExecutable(x)) return;
		if (!isPage(response.headers) || isEncoded(response.headers)) return;
		if (x.request.method === 'HEAD') {
			removeFileFields(response.headers);
			if (isStream(response.body)) response.body.cancel();
			// A GET would return the output. Its length is unknown, because the template is not executed for a HEAD.
			response.body = response.body === null ? null : new UnsentBody(undefined);
			return;
		}
		if (response.body === null) return;
		const bufferedBody = readWholeBody(response.body, MAX_RESPONSE_BYTES, 'the response');
		if (bufferedBody instanceof Promise) return bufferedBody.then(body => executeTemplate(stepState, x, page, body));
		return executeTemplate(stepState, x, page, bufferedBody);
	};

	return x => {
		const page = getOrBeginPage(x);
		const restartHandlers = x.request.headers.has('range') ? restartPoint(x) : undefined;
		const onResponse = (): void | Promise<void> => {
			if (restartHandlers && isExecutable(x) && isPartialPage(x, isPage)) {
				restartHandlers();
				return requestCompleteResponse(x, page);
			}
			return executeResponse(x, page);
		};
		const pending = next(x);
		return pending instanceof Promise ? pending.then(onResponse) : onResponse();
	};

	/**
	 * Requests the complete response instead of a part: a part of a template cannot be executed, and sending it would reveal the
	 * template's source.
	 */
	function requestCompleteResponse(x: Exchange, page: TemplatePage): void | Promise<void> {
		x.keepReceivedHeaders();
		x.request.headers.delete('range');
		x.request.headers.delete('if-range');
		const pending = next(x);
		return pending instanceof Promise ? pending.then(() => executeResponse(x, page)) : executeResponse(x, page);
	}
}

/** Returns the page for the response: the page of an outer `templates`, or a new page. */
function getOrBeginPage(x: Exchange): TemplatePage {
	const outerPage = x.variable(TEMPLATE_PAGE_VARIABLE) as TemplatePage | undefined;
	if (outerPage && outerPage.error === x.error) return outerPage;
	const page: TemplatePage = { error: x.error, isExecuted: false, source: undefined, body: undefined };
	x.variables.set(TEMPLATE_PAGE_VARIABLE, page);
	return page;
}

function isPartialPage(x: Exchange, isPage: (headers: HeaderList) => boolean): boolean {
	const { status, headers } = x.response;
	if (status !== 206) return false;
	return isPage(headers) || /^multipart\/byteranges/i.test(headers.get('content-type') ?? '');
}

function isEncoded(headers: HeaderList): boolean {
	const coding = headers.getCombined('content-encoding');
	return coding !== undefined && coding.trim().toLowerCase() !== 'identity' && coding.trim() !== '';
}

/** Removes the header fields that describe the file of a template, because they do not apply to the template's output. */
function removeFileFields(headers: HeaderList): void {
	for (const name of ['content-length', 'etag', 'last-modified', 'accept-ranges']) headers.delete(name);
}

function executeTemplate(
	stepState: TemplatesStepState,
	x: Exchange,
	page: TemplatePage,
	body: Body,
): void | Promise<void> {
	const { response } = x;
	const bodyBytes = body instanceof Uint8Array ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : undefined;
	// Text that is not UTF-8 is processed byte by byte.
	const isLatin1 = bodyBytes !== undefined && !isUtf8(bodyBytes);
	const templateText = bodyBytes ? bodyBytes.toString(isLatin1 ? 'latin1' : 'utf8') : (body as string);
	const templateSource = page.source && page.body === body ? page.source : { text: templateText };
	const host = new PageHost(x, stepState);
	const templateName = x.request.path;
	const executePage = (): void | Promise<void> => {
		let output: string;
		try {
			const template = stepState.compile(templateSource, templateName);
			output = executeTextTemplate(template, { name: templateName, data: host.data, budget: host.budget, deps: host });
		} catch (error) {
			if (!(error instanceof Suspension)) {
				// The error routes will answer with another body, to which these fields do not apply.
				removeFileFields(response.headers);
				response.headers.delete('content-type');
				throw toPageError(error);
			}
			return error.pendingResult.then(() => {
				host.restart();
				return executePage();
			});
		}
		page.isExecuted = true;
		response.headers.clear();
		for (const [field, value] of host.headers) response.headers.add(field, value);
		removeFileFields(response.headers);
		response.body = isLatin1 ? Buffer.from(output, 'latin1') : output;
	};
	// If the body was a stream, it has been read to its end, so the buffered body replaces it, even if the execution fails.
	response.body = body;
	return executePage();
}
