/** Colors code, as HTML. Configurations are colored by the language server's semantic tokens. */
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { escapeHtml } from '../../compiler/exchange/html-text.ts';
import { semanticTokens } from '../../compiler/queries/semantic-tokens.ts';
import { parseSyntax } from '../../compiler/queries/text-syntax.ts';

/** Returns code as HTML, colored if the language is known. */
export function highlight(text: string, language: string): string {
	switch (language) {
		case 'configfile':
			return highlightConfiguration(text, 'configfile');
		case 'caddyfile':
			return highlightConfiguration(text, 'compatfile');
		case 'console':
			return text
				.split('\n')
				.map(line =>
					line.startsWith('$ ')
						? `<span class="t-prompt">$ </span><span class="t-command">${escapeHtml(line.slice(2))}</span>`
						: escapeHtml(line),
				)
				.join('\n');
		default:
			return escapeHtml(text);
	}
}

function highlightConfiguration(text: string, dialect: Dialect): string {
	let html = '';
	let coloredUntil = 0;
	for (const { start, end, type } of semanticTokens(parseSyntax('example', text, dialect))) {
		html += `${escapeHtml(text.slice(coloredUntil, start))}<span class="t-${type}">${escapeHtml(text.slice(start, end))}</span>`;
		coloredUntil = end;
	}
	return html + escapeHtml(text.slice(coloredUntil));
}
