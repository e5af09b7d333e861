/** Escapes text for HTML pages that the server generates. */

/** Escapes text for HTML, in elements and in attributes with either kind of quotes. */
export function escapeHtml(text: string): string {
	return text
		.replaceAll('&', '&amp;')
		.replaceAll('<', '&lt;')
		.replaceAll('>', '&gt;')
		.replaceAll('"', '&quot;')
		.replaceAll("'", '&#39;');
}
