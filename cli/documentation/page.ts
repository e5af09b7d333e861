/** A page of the documentation site, before it becomes HTML. */

/** A page: an introduction and sections. */
export interface Page {
	/** The path of the page's file in the site, such as `guides/https.html`. */
	readonly path: string;
	readonly title: string;
	/** The heading of the navigation under which the page is listed. */
	readonly group: string;
	/** The sections. The first one is the introduction, which has no heading. */
	readonly sections: readonly PageSection[];
	/** The contents of the files that examples of the page name, by file name. */
	readonly files?: ReadonlyMap<string, string>;
}

export interface PageSection {
	/** The fragment of the section's URL; '' for the introduction. */
	readonly id: string;
	/** The title as plain text, without Markdown. */
	readonly title: string;
	readonly markdown: string;
	/** The texts in which a search looks for this section, each with the weight of its words. */
	readonly searchTexts: readonly (readonly [text: string, weight: number])[];
}

/** Converts a text to a form that can be the fragment of a URL. */
export function toSlug(text: string): string {
	return text
		.toLowerCase()
		.replace(/[^a-z0-9_]+/g, '-')
		.replace(/^-|-$/g, '');
}
