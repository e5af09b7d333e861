/** The names of the guides, in the order in which a reader needs them. A guide's text is in the file `<name>.md` in this folder. */

/** The names of the guides, by group. */
const TOPICS_BY_GROUP = {
	Start: ['install', 'first-site', 'language', 'recipes', 'https'],
	Sites: ['proxying', 'php', 'single-page', 'caching', 'headers', 'rate-limits', 'overload'],
	'Check and change': ['testing', 'comparing', 'zero-downtime', 'handover', 'admin-api'],
	Operate: [
		'logs',
		'containers',
		'cluster',
		'fleet',
		'redis',
		'redis-failover',
		'cluster-size',
		'performance',
		'troubleshooting',
		'production',
		'security',
	],
	'Move from another server': ['from-caddy', 'from-nginx', 'from-haproxy'],
} as const;

/** The name of a guide, such as `https`. */
export type Topic = (typeof TOPICS_BY_GROUP)[keyof typeof TOPICS_BY_GROUP][number];

/** The names of all guides, in reading order. */
export const TOPICS: readonly Topic[] = Object.values(TOPICS_BY_GROUP).flat();

/** The groups of guides, in reading order. */
export const TOPIC_GROUPS: readonly string[] = Object.keys(TOPICS_BY_GROUP);

/** Returns the name of the group to which a guide belongs. */
export function groupOf(topic: Topic): string {
	return Object.entries(TOPICS_BY_GROUP).find(([, topics]) => topics.some(name => name === topic))![0];
}
