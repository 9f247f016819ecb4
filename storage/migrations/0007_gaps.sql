-- Speech without text is marked, a call's sides are told apart, and a recognition may be a translation.

ALTER TABLE segments
    -- Whose words they are, where a recording's sides were recognised apart; empty where it has none.
    ADD COLUMN side text NOT NULL DEFAULT '' CHECK (side IN ('', 'left', 'right')),
    -- As found in this piece, where each slice has a language of its own.
    ADD COLUMN language text,
    -- Why speech here has no text; NULL where there is one.
    ADD COLUMN gap text,
    ADD CONSTRAINT gap_has_no_text CHECK (gap IS NULL OR text = '');
-- What has no text is few, and every poll asks for it.
CREATE INDEX segments_gaps ON segments (record_id) WHERE gap IS NOT NULL;

-- Whether the text is wanted in English, whatever is spoken. As submitted.
ALTER TABLE records ADD COLUMN translate boolean NOT NULL DEFAULT false;
