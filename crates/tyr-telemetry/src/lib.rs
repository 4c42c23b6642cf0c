//! A monitoring store on Týr: measurements and their aggregates in one transaction.
