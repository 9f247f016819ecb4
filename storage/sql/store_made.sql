-- A new folder of audio; its id is written into the folder after this.
INSERT INTO stores (id) VALUES (%(id)s)
