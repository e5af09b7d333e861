/**
 * The names of the guides, in the order in which a reader needs them. The file of a guide is `<name>.md`, in the folder of this
 * file.
 */

/** The guides by subject. */
const GROUPS = {
	Start: ['install', 'first-site', 'language', 'https'],
	Sites: ['proxying', 'php', 'single-page', 'caching', 'headers'],
	'Check and change': ['testing', 'comparing', 'zero-downtime', 'handover', 'admin-api'],
	Operate: ['logs', 'containers', 'cluster', 'performance', 'troubleshooting', 'production', 'security'],
	'Move from another server': ['from-caddy', 'from-nginx', 'from-haproxy'],
} as const;

/** The name of a guide, such as `https`. */
export type Topic = (typeof GROUPS)[keyof typeof GROUPS][number];

/** All guides. */
export const TOPICS: readonly Topic[] = Object.values(GROUPS).flat();

/** The subjects, in order. */
export const TOPIC_GROUPS: readonly string[] = Object.keys(GROUPS);

/** Returns the subject of a guide. */
export function groupOf(topic: Topic): string {
	return Object.entries(GROUPS).find(([, topics]) => topics.some(name => name === topic))![0];
}
