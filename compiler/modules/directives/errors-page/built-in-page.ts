/** The error pages that are built in: HTML, JSON or plain text. */
import { escapeHtml } from '../../../exchange/html-text.ts';

/** Color themes of the error page. `auto` follows the browser's preference. */
export const ERROR_PAGE_THEMES = ['auto', 'light', 'dark'] as const;
export type ErrorPageTheme = (typeof ERROR_PAGE_THEMES)[number];

/** The contents of a page, as plain text. */
export interface ErrorPageContent {
	readonly status: number;
	readonly title: string;
	readonly text: string;
	readonly requestId: string | undefined;
}

/**
 * Content security policy under which the page cannot load anything, run scripts or submit forms, whatever text is inserted in it.
 */
export const PAGE_CONTENT_SECURITY_POLICY =
	"default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

const LIGHT_COLORS = '--back:#fff;--front:#1b1f24;--faint:#59636e;--accent:#b3261e';
const DARK_COLORS = '--back:#15181c;--front:#e6e9ed;--faint:#9aa4b0;--accent:#ff8a80';

const THEME_COLORS: { readonly [theme in ErrorPageTheme]: string } = {
	auto: `:root{color-scheme:light dark;${LIGHT_COLORS}}@media(prefers-color-scheme:dark){:root{${DARK_COLORS}}}`,
	light: `:root{color-scheme:light;${LIGHT_COLORS}}`,
	dark: `:root{color-scheme:dark;${DARK_COLORS}}`,
};

/**
 * On a phone, `100vh` is the height of the window while the browser's address bar is hidden, so a page of this height could
 * always be scrolled. Browsers that know `dvh` use the height that is visible instead.
 */
const PAGE_STYLE = `*{box-sizing:border-box}
body{margin:0;min-height:100vh;min-height:100dvh;display:grid;place-items:center;padding:1.5rem;background:var(--back);color:var(--front);font:1rem/1.5 system-ui,sans-serif}
main{max-width:36rem;width:100%;overflow-wrap:anywhere}
.status{margin:0;font-size:1rem;font-weight:600;color:var(--accent)}
h1{margin:.25rem 0 .75rem;font-size:1.75rem;line-height:1.2}
p{margin:0 0 .75rem}
.id{color:var(--faint);font-size:.875rem}`;

/**
 * Returns the page as HTML. `hasBuiltInText` is true if some of the page's text is not configured but built in, and therefore
 * English.
 */
export function htmlErrorPage(content: ErrorPageContent, theme: ErrorPageTheme, hasBuiltInText: boolean): string {
	const { status, requestId } = content;
	const titleHtml = escapeHtml(content.title);
	const textHtml = content.text === '' ? '' : `<p>${escapeHtml(content.text)}</p>\n`;
	const requestIdHtml =
		requestId === undefined ? '' : `<p class="id">Request ID: <code>${escapeHtml(requestId)}</code></p>\n`;
	return `<!doctype html>
<html${hasBuiltInText ? ' lang="en"' : ''}>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
<title>${status} ${titleHtml}</title>
<style>
${THEME_COLORS[theme]}
${PAGE_STYLE}
</style>
</head>
<body>
<main>
<p class="status">${status}</p>
<h1>${titleHtml}</h1>
${textHtml}${requestIdHtml}</main>
</body>
</html>
`;
}

/** Returns the page as JSON, for programs. `error` is the reason phrase, `message` the configured text, if there is one. */
export function jsonErrorPage(
	{ status, requestId }: ErrorPageContent,
	error: string,
	message: string | undefined,
): string {
	return `${JSON.stringify({ status, error, message, request_id: requestId })}\n`;
}

export function textErrorPage({ status, title, text, requestId }: ErrorPageContent): string {
	const lines = [`${status} ${title}`];
	if (text !== '') lines.push(text);
	if (requestId !== undefined) lines.push(`Request ID: ${requestId}`);
	return `${lines.join('\n')}\n`;
}

const STATUS_EXPLANATIONS: { readonly [status: number]: string } = {
	401: 'You need to log in to see this page.',
	403: 'You are not allowed to see this page.',
	404: 'There is no page at this address.',
	410: 'There is no page at this address any more.',
	413: 'The request is too large.',
	429: 'There were too many requests. Please try again later.',
	502: 'The server cannot answer at the moment. Please try again later.',
	503: 'The server cannot answer at the moment. Please try again later.',
	504: 'The server did not answer in time. Please try again later.',
};

/** Returns the sentence that explains a status to visitors. */
export function defaultErrorText(status: number): string {
	return (
		STATUS_EXPLANATIONS[status] ??
		(status >= 500 ? 'Something went wrong on the server.' : 'The server cannot process this request.')
	);
}
